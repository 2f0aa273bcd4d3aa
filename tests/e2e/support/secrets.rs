//! Secrets of hosts and drives, and files of them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::support::harness::Array;

/// Name of the host that `csd` is without `--host-nqn`.
pub(crate) const HOST: &str = "nqn.2026-11.io.csdstore:host";

/// Returns the line of a new secret.
pub(crate) fn new_secret(array: &Array, arguments: &[&str]) -> String {
    array.csd(&[&["secret", "new"], arguments].concat()).expect(0, &[]).text()
}

/// Writes a secrets file that only its owner may read.
pub(crate) fn secrets_file(array: &Array, name: &'static str, lines: &[String]) -> &'static str {
    fs::write(array.path(name), lines.concat()).unwrap();
    fs::set_permissions(array.path(name), Permissions::from_mode(0o600)).unwrap();
    name
}
