//! What every command needs: the array file, and a core connected to the array.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use csd_initiator::Secrets;
use csd_store::Options;
use csd_store::array::{Array, ArrayFile, DEFAULT_PATH, Plan};

use crate::array::lock::Writers;
use crate::cli::parse_nqn;
use crate::report::{self, Failure, Style};
use crate::runtime::runtime;
use crate::{host, secret};

/// Longest that connecting with authentication may take.
const AUTHENTICATED_WITHIN: Duration = Duration::from_secs(30);

/// The global options.
pub(crate) struct Context {
    array: PathBuf,
    secrets: Option<PathBuf>,
    host_nqn: Option<String>,
    // The name of this machine, once it was looked up.
    machine: OnceLock<String>,
    /// The array file was named by an option.
    pub(crate) array_is_named: bool,
    /// Print one JSON object.
    pub(crate) json: bool,
    /// Print results, warnings and errors only.
    pub(crate) quiet: bool,
    /// Name drives by their whole URL.
    pub(crate) verbose: bool,
}

impl Context {
    pub(crate) fn new(
        array: Option<PathBuf>,
        secrets: Option<PathBuf>,
        host_nqn: Option<String>,
        Style { json, quiet, verbose }: Style,
    ) -> Self {
        let named = |option: Option<PathBuf>, variable| {
            option.or_else(|| Some(PathBuf::from(std::env::var_os(variable)?)))
        };
        let array_is_named = array.is_some();
        let array = named(array, "CSD_ARRAY").unwrap_or_else(|| DEFAULT_PATH.into());
        let secrets = named(secrets, "CSD_SECRETS");
        let machine = OnceLock::new();
        Self { array, secrets, host_nqn, machine, array_is_named, json, quiet, verbose }
    }

    /// Path of the secrets file, if there is one.
    pub(crate) fn secrets_path(&self) -> Option<&Path> {
        self.secrets.as_deref()
    }

    /// The secrets, if there are any.
    pub(crate) fn secrets(&self) -> Result<Secrets, Failure> {
        self.secrets_path().map_or_else(|| Ok(Secrets::default()), secret::load)
    }

    /// How this host connects.
    pub(crate) fn options(&self) -> Result<Options, Failure> {
        let secrets = self.secrets()?;
        let host_nqn = self.host_nqn(&secrets)?;
        let mut options = Options { secrets, host_nqn, ..Options::default() };
        if self.secrets.is_some() {
            // A drive authenticates when its CPU has nothing better to do.
            options.connect_timeout = AUTHENTICATED_WITHIN;
        }
        Ok(options)
    }

    /// Who this host is: whom the option or the environment says, the one host of the secrets
    /// file, or this machine.
    fn host_nqn(&self, secrets: &Secrets) -> Result<String, Failure> {
        if let Some(told) = &self.host_nqn {
            return Ok(told.clone());
        }
        if let Ok(told) = std::env::var("CSD_HOST_NQN") {
            let wrong = |why| Failure::usage(format!("$CSD_HOST_NQN: {why}"));
            return parse_nqn(&told).map_err(wrong);
        }
        let mut hosts = secrets.hosts();
        if let (Some(only), None) = (hosts.next(), hosts.next()) {
            return Ok(only.to_owned());
        }
        if let Some(machine) = self.machine.get() {
            return Ok(machine.clone());
        }
        let machine = host::name()?;
        Ok(self.machine.get_or_init(|| machine).clone())
    }

    /// A drive's URL as a table shows it: its host and port, or the whole.
    pub(crate) fn shown(&self, url: &str) -> String {
        if self.verbose { url.to_owned() } else { report::places(url).into_owned() }
    }

    /// Path of the array file.
    pub(crate) fn array_path(&self) -> &Path {
        &self.array
    }

    /// The array file and where its drives are.
    pub(crate) fn plan(&self) -> Result<Plan, Failure> {
        Ok(Plan::new(&ArrayFile::load(&self.array)?))
    }

    /// [`Self::with_array`] for a command that writes names: no drive is added meanwhile.
    pub(crate) fn with_array_to_write<T: Send + 'static>(
        &self,
        command: impl AsyncFnOnce(&Array) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        // The array file is read under the lock.
        let _writers = Writers::share(&self.array)?;
        self.with_array(command)
    }

    /// Runs `command` on one core that is connected to the array.
    pub(crate) fn with_array<T: Send + 'static>(
        &self,
        command: impl AsyncFnOnce(&Array) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        with_plan(&self.plan()?, self.options()?, command)
    }
}

/// Runs `command` on one core that is connected to the drives of `plan`.
pub(crate) fn with_plan<T: Send + 'static>(
    plan: &Plan,
    options: Options,
    command: impl AsyncFnOnce(&Array) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let plan = plan.clone();
    let done = csd_reactor::block_on(&runtime(), move || async move {
        let array = Array::connect(&plan, &options).await;
        let done = command(&array).await;
        array.disconnect().await;
        done
    });
    done.map_err(Failure::run)?
}

/// A progress that nobody sees.
pub(crate) fn silent() -> csd_store::object::Progress {
    Arc::new(|_| {})
}
