//! `csd secret new`, and the secrets file.
//!
//! Prints only new secrets. Invariant: a file that others than its owner may access is refused,
//! because others may have read it.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use csd_initiator::{Secret, Secrets};
use serde_json::json;

use crate::cli::NewSecret;
use crate::report::{Failure, Report};
use crate::runtime::random;

/// Permission bits of group and others.
const NOT_OWNER: u32 = 0o077;
/// Longest secrets file that is read, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Makes a secret.
pub(crate) fn new(options: &NewSecret) -> Result<Report, Failure> {
    let bytes = random::<64>()?;
    let key = &bytes[..options.hash.bytes()];
    let secret = Secret::new(Some(options.hash), key).expect("as many bytes as the hash has");
    let text = secret.to_text();
    let line = options.nqn.as_ref().map(|nqn| format!("host {nqn} {}", *text));
    let printed = line.as_deref().unwrap_or(&text);
    let result = json!({ "secret": *text, "nqn": options.nqn });
    Ok(Report::new(format!("{printed}\n"), result))
}

/// Reads a secrets file.
pub(crate) fn load(path: &Path) -> Result<Secrets, Failure> {
    let cannot = |why: String| Failure::usage(format!("secrets file {}: {why}", path.display()));
    let failed =
        |error: std::io::Error| Failure::os(format!("secrets file {}", path.display()), &error);
    // The mode of the open file is checked, not that of its path.
    let file = std::fs::File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.mode();
    if mode & NOT_OWNER != 0 {
        let mode = mode & 0o777;
        return Err(cannot(format!("others may use it (mode {mode:o}); say chmod 600")));
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    let secrets = Secrets::parse(&text).map_err(cannot)?;
    if secrets.hosts().next().is_none() {
        return Err(cannot("it has no line `host NQN SECRET`".to_owned()));
    }
    Ok(secrets)
}
