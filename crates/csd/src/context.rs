//! What every command needs: the array file, and a core connected to the array.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use csd_store::Options;
use csd_store::array::{Array, ArrayFile, DEFAULT_PATH, Plan};

use crate::report::Failure;

/// The global options.
pub(crate) struct Context {
    array: PathBuf,
    /// The array file was named by an option.
    pub(crate) array_is_named: bool,
    /// Print one JSON object.
    pub(crate) json: bool,
    /// Print results and errors only.
    pub(crate) quiet: bool,
}

impl Context {
    pub(crate) fn new(array: Option<PathBuf>, json: bool, quiet: bool) -> Self {
        let array_is_named = array.is_some();
        let named = array.or_else(|| Some(PathBuf::from(std::env::var_os("CSD_ARRAY")?)));
        Self { array: named.unwrap_or_else(|| DEFAULT_PATH.into()), array_is_named, json, quiet }
    }

    /// Path of the array file.
    pub(crate) fn array_path(&self) -> &Path {
        &self.array
    }

    /// The array file and where its drives are.
    pub(crate) fn plan(&self) -> Result<Plan, Failure> {
        Ok(Plan::new(&ArrayFile::load(&self.array)?))
    }

    /// Runs `command` on one core that is connected to the array.
    pub(crate) fn with_array<T: Send + 'static>(
        &self,
        command: impl AsyncFnOnce(&Array) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        with_plan(&self.plan()?, command)
    }
}

/// Runs `command` on one core that is connected to the drives of `plan`.
pub(crate) fn with_plan<T: Send + 'static>(
    plan: &Plan,
    command: impl AsyncFnOnce(&Array) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let plan = plan.clone();
    let done = csd_reactor::block_on(&runtime(), move || async move {
        let array = Array::connect(&plan, &options()).await;
        let done = command(&array).await;
        array.disconnect().await;
        done
    });
    done.map_err(Failure::run)?
}

/// How this host's cores run.
pub(crate) fn runtime() -> csd_reactor::Config {
    csd_reactor::Config {
        name: "host".to_owned(),
        lane_yields: false,
        ..csd_reactor::Config::default()
    }
}

/// How this host connects.
pub(crate) fn options() -> Options {
    Options::default()
}

/// Random bytes, which are the reactor's to give.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let random = csd_reactor::block_on(&runtime(), || async {
        let mut bytes = [0; N];
        csd_reactor::random_bytes(&mut bytes);
        bytes
    });
    random.map_err(Failure::run)
}

/// A progress that nobody sees.
pub(crate) fn silent() -> csd_store::object::Progress {
    Arc::new(|_| {})
}
