//! The secrets file of a host.
//!
//! Invariant: a file that others than its owner may access is refused, because others may have read
//! it.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use csd_initiator::Secrets;

use crate::SettingsError;

/// Permission bits of group and others.
const NOT_OWNER: u32 = 0o077;
/// Longest secrets file that is read, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads a secrets file.
///
/// # Errors
/// If it cannot be read, others may use it, it is malformed, or it names no host.
pub fn load_secrets(path: &Path) -> Result<Secrets, SettingsError> {
    let named = |why: String| format!("secrets file {}: {why}", path.display());
    let failed = |error: std::io::Error| SettingsError::system(named(error.to_string()));
    // The mode of the open file is checked, not that of its path.
    let file = std::fs::File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.mode();
    if mode & NOT_OWNER != 0 {
        let mode = mode & 0o777;
        let why = format!("others may use it (mode {mode:o}); say chmod 600");
        return Err(SettingsError::usage(named(why)));
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    let secrets = Secrets::parse(&text).map_err(|why| SettingsError::usage(named(why)))?;
    if secrets.hosts().next().is_none() {
        return Err(SettingsError::usage(named("it has no line `host NQN SECRET`".to_owned())));
    }
    Ok(secrets)
}
