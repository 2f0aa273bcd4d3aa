//! `csd array reclaim`.
//!
//! Invariant: a put that was cut off is freed only if no command of this machine wrote names when
//! it was looked for, and it has stored nothing more for [`STILL`].

use std::time::Duration;

use csd_reactor::sleep;
use csd_store::array::{Array, Writers};
use csd_store::catalogue::Entry;
use csd_store::error::NameError;
use csd_store::object::{self, Error};
use serde_json::{Value, json};

use crate::context::Context;
use crate::report::{Failure, Report};
use crate::units::{counted, size};

/// Time in which a put of another machine that still runs stores something.
const STILL: Duration = Duration::from_secs(3);

/// A put that has begun and not ended, and what is on the drives for it.
struct Staged {
    entry: Entry,
    bytes: u64,
    is_freed: bool,
}

/// Deletes data and claims of interrupted puts.
pub(crate) fn reclaim(context: &Context) -> Result<Report, Failure> {
    // Without locks of files it is not known who writes.
    let alone = Writers::try_exclude(context.array_path()).ok().flatten();
    let staged = context.with_array(async |array: &Array| staged(array).await)?;
    let may_free = alone.is_some();
    drop(alone);
    let (done, staged, warnings) = context.with_array_to_write(async move |array: &Array| {
        let mut warnings = array.down();
        let staged = match may_free {
            true => free(array, staged, &mut warnings).await?,
            false => staged,
        };
        Ok((object::reclaim(array).await?, staged, warnings))
    })?;
    let mut text: String = staged.iter().map(line).collect();
    if done.puts + done.claims > 0 {
        let puts = counted(done.puts as u64, "put");
        let claims = counted(done.claims as u64, "claim");
        text += &format!("deleted what {puts} left, and {claims}\n");
    } else if staged.is_empty() {
        text += "nothing was left\n";
    }
    if done.kept > 0 {
        text += &format!(
            "kept the data of {} that no name refers to: it may belong to damaged names\n",
            counted(done.kept as u64, "put")
        );
    }
    let cut_off: Vec<Value> = staged.iter().map(describe).collect();
    let result = json!({
        "puts": done.puts, "claims": done.claims, "kept": done.kept, "cut_off": cut_off,
    });
    Ok(Report::new(text, result).with_warnings(warnings))
}

/// Returns the puts that have begun and not ended.
async fn staged(array: &Array) -> Result<Vec<Staged>, Failure> {
    let mut found = Vec::new();
    for entry in object::list(array).await?.staged {
        let bytes = object::space_taken(array, &entry).await?;
        found.push(Staged { entry, bytes, is_freed: false });
    }
    Ok(found)
}

/// Frees those that have stored nothing more since, and returns all that have not ended.
async fn free(
    array: &Array,
    staged: Vec<Staged>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Staged>, Failure> {
    if !staged.is_empty() {
        sleep(STILL).await;
    }
    let mut left = Vec::new();
    for Staged { entry, bytes, .. } in staged {
        let now = object::space_taken(array, &entry).await?;
        if now != bytes {
            left.push(Staged { entry, bytes: now, is_freed: false });
            continue;
        }
        match object::remove_staged(array, &entry).await {
            Ok(more) => warnings.extend(more),
            // It has ended by itself.
            Err(Error::Name(NameError::Overtaken { .. } | NameError::Missing { .. })) => continue,
            Err(error) => return Err(error.into()),
        }
        left.push(Staged { entry, bytes, is_freed: true });
    }
    warnings.sort();
    warnings.dedup();
    Ok(left)
}

fn line(Staged { entry, bytes, is_freed }: &Staged) -> String {
    let (name, bytes) = (&entry.name, size(*bytes));
    match is_freed {
        true => format!("{name}: cut off, freed {bytes}\n"),
        false => format!("{name}: kept {bytes}: its put may still run; `csd rm` removes it\n"),
    }
}

fn describe(Staged { entry, bytes, is_freed }: &Staged) -> Value {
    json!({ "name": entry.name, "bytes": bytes, "freed": is_freed })
}
