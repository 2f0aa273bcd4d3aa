//! State that every command needs: global options, the array file, and a core connected to the
//! array.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use csd_client::{load_secrets, machine_nqn};
use csd_initiator::Secrets;
use csd_store::Options;
use csd_store::array::{Array, DEFAULT_PATH, Plan};
use serde_json::Value;

use crate::array::lock::Writers;
use crate::cli::parse_nqn;
use crate::report::{self, Failure, Style};
use crate::runtime::runtime;

/// Damage of the catalogue that this process has met, in words.
static DAMAGE: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Returns damage of the catalogue that the commands on arrays have met so far: warnings of
/// whatever was done.
pub(crate) fn damage_met() -> Vec<String> {
    DAMAGE.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}

/// The global options.
pub(crate) struct Context {
    array: PathBuf,
    secrets: Option<PathBuf>,
    host_nqn: Option<String>,
    /// Longest wait for an answer of a drive.
    timeout: Duration,
    // The machine's NQN, once it is known.
    machine: OnceLock<String>,
    /// True if an option names the array file.
    pub(crate) array_is_named: bool,
    /// True to print one JSON object.
    pub(crate) json: bool,
    /// True to print results, warnings and errors only.
    pub(crate) quiet: bool,
    /// True to name drives by their whole URL.
    pub(crate) verbose: bool,
}

impl Context {
    pub(crate) fn new(
        array: Option<PathBuf>,
        secrets: Option<PathBuf>,
        host_nqn: Option<String>,
        timeout: Duration,
        Style { json, quiet, verbose }: Style,
    ) -> Self {
        let named = |option: Option<PathBuf>, variable| {
            option.or_else(|| Some(PathBuf::from(std::env::var_os(variable)?)))
        };
        let array_is_named = array.is_some();
        let array = named(array, "CSD_ARRAY").unwrap_or_else(|| DEFAULT_PATH.into());
        let secrets = named(secrets, "CSD_SECRETS");
        let machine = OnceLock::new();
        Self { array, secrets, host_nqn, timeout, machine, array_is_named, json, quiet, verbose }
    }

    /// Returns a result for the JSON object; null if text is printed.
    pub(crate) fn for_json(&self, result: impl FnOnce() -> Value) -> Value {
        if self.json { result() } else { Value::Null }
    }

    /// Returns the path of the secrets file, if there is one.
    pub(crate) fn secrets_path(&self) -> Option<&Path> {
        self.secrets.as_deref()
    }

    /// Returns the secrets; none without a secrets file.
    pub(crate) fn secrets(&self) -> Result<Secrets, Failure> {
        match self.secrets_path() {
            Some(path) => Ok(load_secrets(path)?),
            None => Ok(Secrets::default()),
        }
    }

    /// Returns the longest wait for an answer of a drive.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns the options with which this host connects.
    pub(crate) fn options(&self) -> Result<Options, Failure> {
        let secrets = self.secrets()?;
        let host_nqn = self.host_nqn(&secrets)?;
        let defaults = Options::default();
        Ok(Options {
            secrets,
            host_nqn,
            reach_timeout: defaults.reach_timeout.min(self.timeout),
            connect_timeout: self.timeout,
            command_timeout: self.timeout,
            // A drive that is stopped for as long must not take this host for gone.
            keep_alive: defaults.keep_alive.max(self.timeout * 2),
            ..defaults
        })
    }

    /// Returns this host's NQN: from the option, the environment, the only host of the secrets
    /// file, or this machine, in this order.
    fn host_nqn(&self, secrets: &Secrets) -> Result<String, Failure> {
        if let Some(named) = &self.host_nqn {
            return Ok(named.clone());
        }
        if let Ok(named) = std::env::var("CSD_HOST_NQN") {
            let wrong = |why| Failure::usage(format!("$CSD_HOST_NQN: {why}"));
            return parse_nqn(&named).map_err(wrong);
        }
        let mut hosts = secrets.hosts();
        if let (Some(only), None) = (hosts.next(), hosts.next()) {
            return Ok(only.to_owned());
        }
        if let Some(machine) = self.machine.get() {
            return Ok(machine.clone());
        }
        let machine = machine_nqn()?;
        Ok(self.machine.get_or_init(|| machine).clone())
    }

    /// Returns a drive's URL as tables show it: host and port, or all of it.
    pub(crate) fn shown(&self, url: &str) -> String {
        if self.verbose { url.to_owned() } else { report::places(url).into_owned() }
    }

    /// Returns the path of the array file.
    pub(crate) fn array_path(&self) -> &Path {
        &self.array
    }

    /// Loads the array file and returns the addresses of its drives.
    pub(crate) fn plan(&self) -> Result<Plan, Failure> {
        Ok(Plan::load(&self.array)?)
    }

    /// Does [`Self::with_array`] for a command that writes names: no drive can be added meanwhile.
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
        DAMAGE.lock().unwrap_or_else(PoisonError::into_inner).extend(array.damage_met());
        array.disconnect().await;
        done
    });
    done.map_err(Failure::run)?
}
