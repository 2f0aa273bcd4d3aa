//! `csd array rebuild`: gives drives that have forgotten a part of the catalogue their votes back.

use csd_store::array::{Array, DriveIndex, Plan};
use csd_store::catalogue::rebuild;
use csd_store::object;
use serde_json::{Value, json};

use super::accept::{self, describe, wanted};
use crate::cli;
use crate::context::{Context, with_plan};
use crate::report::{Failure, Report};

/// Rebuilds the catalogue of the named drives, or of all that do not vote.
pub(crate) fn rebuild(options: &cli::Rebuild, context: &Context) -> Result<Report, Failure> {
    if !options.accept_name.is_empty() {
        return accept::names(&options.accept_name, context);
    }
    let names = options.drives.clone();
    let (drives, down) = if options.accept {
        accept::votes(&names, context)?
    } else {
        context.with_array_to_write(async move |array: &Array| {
            let done = rebuild_all(array, &wanted(array, &names)?).await;
            let drives = done.map_err(|failure| accept::advised(array, failure))?;
            // Says which names are damaged.
            object::list(array).await.ok();
            Ok((drives, array.down()))
        })?
    };
    let mut text = String::new();
    for drive in &drives {
        let (name, names, stored) = (plain(&drive["name"]), &drive["names"], &drive["stored"]);
        text.push_str(&format!("{name}: {stored} of {names} names and claims stored; it votes\n"));
    }
    if drives.is_empty() {
        text.push_str("every drive that is up votes\n");
    }
    // Drives that were rebuilt are listed as they were before.
    let is_rebuilt = |warning: &String| {
        let of = |drive: &Value| warning.starts_with(&format!("drive {} ", plain(&drive["name"])));
        drives.iter().any(of)
    };
    let warnings: Vec<String> = down.into_iter().filter(|warning| !is_rebuilt(warning)).collect();
    Ok(Report::new(text, json!({ "drives": drives })).with_warnings(warnings))
}

/// Rebuilds drives that have just been started and do not vote. Returns warnings about those that
/// still do not.
pub(super) fn after_start(plan: &Plan, context: &Context) -> Result<Vec<String>, Failure> {
    with_plan(plan, context.options()?, async |array: &Array| Ok(votes(array).await?.warnings))
}

/// Outcome of [`votes`].
pub(crate) struct Votes {
    /// Drives that vote again, as in JSON output.
    pub(crate) rebuilt: Vec<Value>,
    /// Warnings about drives that still do not vote.
    pub(crate) warnings: Vec<String>,
}

/// Rebuilds all drives that are up and do not vote, as far as possible.
pub(crate) async fn votes(array: &Array) -> Result<Votes, Failure> {
    let mut votes = Votes { rebuilt: Vec::new(), warnings: Vec::new() };
    for index in wanted(array, &[])? {
        match rebuild_all(array, &[index]).await {
            Ok(rebuilt) => votes.rebuilt.extend(rebuilt),
            Err(failure) => {
                let failure = accept::advised(array, failure);
                let (name, why) = (&array.slots()[index].name, failure.message);
                let warning = format!("drive {name} does not vote, and was not rebuilt: {why}");
                votes.warnings.push(warning);
            }
        }
    }
    Ok(votes)
}

fn plain(name: &Value) -> &str {
    name.as_str().unwrap_or_default()
}

async fn rebuild_all(array: &Array, places: &[DriveIndex]) -> Result<Vec<Value>, Failure> {
    let mut drives = Vec::new();
    for &index in places {
        let done = rebuild::rebuild(array, index).await?;
        drives.push(describe(array, index, done));
    }
    Ok(drives)
}
