//! `csd secret new`.
//!
//! Prints only new secrets.

use csd_initiator::Secret;
use serde_json::json;

use crate::cli::NewSecret;
use crate::report::{Failure, Report};
use crate::runtime::random;

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
