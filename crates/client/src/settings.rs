//! [`Settings`]: connecting, reconnecting and storing.
//!
//! The environment and the files are those of the `csd` command. Invariant: the host's name is an
//! NVMe Qualified Name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use csd_initiator::{Options, Secrets};

use crate::host::{machine_nqn, parse_nqn};
use crate::secrets::load_secrets;
use crate::{Error, SettingsError};

/// Timeout of connecting with authentication: a drive authenticates at low priority.
const AUTHENTICATED_WITHIN: Duration = Duration::from_secs(30);

/// Settings of a host: connecting, reconnecting, storing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Name and secrets of this host, queues, digests and timeouts.
    pub options: Options,
    /// Number of attempts to reconnect after a lost connection, each after a longer pause; also
    /// the number of losses that one command survives. 0: a lost connection is an error.
    pub tries: u32,
    /// Pause before the first attempt; it triples with every further one.
    pub pause: Duration,
    /// Maximum length of a value and of a piece of a long object, bytes; the drive may allow less.
    pub piece_bytes_max: u32,
    /// Pieces of a long object in flight.
    pub depth: usize,
    /// Commands of a [`crate::Client`] under way before a thread that submits another one waits.
    pub capacity: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            options: Options::default(),
            tries: 3,
            pause: Duration::from_millis(100),
            piece_bytes_max: 4 << 20,
            depth: 8,
            capacity: 1024,
        }
    }
}

impl Settings {
    /// Returns settings as `csd` has them without options: the secrets file of `$CSD_SECRETS`, the
    /// host's name of `$CSD_HOST_NQN`, of that file if it names one host, or of this machine.
    ///
    /// # Errors
    /// [`Error::Settings`] if a file or a name cannot be used.
    pub fn from_environment() -> Result<Self, Error> {
        Self::from_environment_with(None)
    }

    /// Does the same as [`Self::from_environment`] with this secrets file, if there is one.
    ///
    /// # Errors
    /// As [`Self::from_environment`].
    pub fn from_environment_with(secrets: Option<&Path>) -> Result<Self, Error> {
        let of_environment = || std::env::var_os("CSD_SECRETS").map(PathBuf::from);
        let settings = match secrets.map(Path::to_owned).or_else(of_environment) {
            Some(path) => Self::default().with_secrets_file(&path)?,
            None => Self::default(),
        };
        let named = std::env::var("CSD_HOST_NQN").ok();
        let named = named.map(|nqn| {
            parse_nqn(&nqn).map_err(|why| SettingsError::usage(format!("$CSD_HOST_NQN: {why}")))
        });
        let nqn = match (named.transpose()?, settings.only_host()) {
            (Some(nqn), _) | (None, Some(nqn)) => nqn,
            (None, None) => machine_nqn()?,
        };
        Ok(settings.with_host_nqn(nqn))
    }

    /// Takes the secrets of a file, and this host's name if the file names one host.
    ///
    /// # Errors
    /// [`Error::Settings`] if the file cannot be used.
    pub fn with_secrets_file(self, path: &Path) -> Result<Self, Error> {
        Ok(self.with_secrets(load_secrets(path)?))
    }

    /// Takes secrets, and this host's name if they name one host.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Secrets) -> Self {
        self.options.secrets = secrets;
        self.options.connect_timeout = AUTHENTICATED_WITHIN;
        match self.only_host() {
            Some(nqn) => self.with_host_nqn(nqn),
            None => self,
        }
    }

    /// Sets this host's NVMe Qualified Name.
    #[must_use]
    pub fn with_host_nqn(mut self, nqn: String) -> Self {
        self.options.host_nqn = nqn;
        self
    }

    fn only_host(&self) -> Option<String> {
        let mut hosts = self.options.secrets.hosts();
        let only = hosts.next().map(str::to_owned);
        only.filter(|_| hosts.next().is_none())
    }
}
