//! `csd kv gc`: pieces of long objects that no manifest names.
//!
//! Invariant: deletes only pieces of objects that two searches found without a manifest and with
//! the same pieces.

use std::time::Duration;

use csd_client::{Error, Key, Session, unchanged};
use csd_reactor::sleep;
use serde_json::{Value, json};

use super::{key, with_session};
use crate::cli::kv::Gc;
use crate::context::Context;
use crate::report::{Failure, Report};
use crate::units::counted;

pub(super) fn gc(options: &Gc, context: &Context) -> Result<Report, Failure> {
    let (delete, wait) = (options.delete, Duration::from_secs(options.wait.into()));
    let found = with_session(&options.at, context, async move |session| match delete {
        true => remove(session, wait).await,
        false => session.orphans().await,
    });
    let found = found??;
    let count = counted(found.len() as u64, "piece");
    let text = match (delete, found.is_empty()) {
        (_, true) => "no pieces without an object\n".to_owned(),
        (true, false) => format!("{count} deleted\n"),
        (false, false) => format!("{count} without an object; --delete deletes them\n"),
    };
    let keys: Vec<Value> = found.iter().map(key::describe).collect();
    Ok(Report::new(text, json!({ "keys": keys, "deleted": delete })))
}

/// Deletes pieces that no object has taken within `wait`; returns their keys.
async fn remove(session: &Session, wait: Duration) -> Result<Vec<Key>, Error> {
    let before = session.orphans().await?;
    if before.is_empty() {
        return Ok(before);
    }
    sleep(wait).await;
    let left = unchanged(&before, &session.orphans().await?);
    session.remove_orphans(&left).await?;
    Ok(left)
}
