//! Secrets and the host's name, as `csd` takes them.

use std::path::Path;

use csd_client::Settings;
use pyo3::PyResult;
use pyo3::exceptions::PyValueError;

use crate::convert::fail;

/// Returns the settings of the environment, with these in their place.
pub(crate) fn settings(secrets: Option<&Path>, host_nqn: Option<&str>) -> PyResult<Settings> {
    let settings = Settings::from_environment_with(secrets).map_err(fail)?;
    match host_nqn {
        Some(nqn) => {
            let nqn = csd_client::parse_nqn(nqn).map_err(PyValueError::new_err)?;
            Ok(settings.with_host_nqn(nqn))
        }
        None => Ok(settings),
    }
}
