//! `csd array reclaim`.

use csd_store::array::Array;
use csd_store::object;
use serde_json::json;

use crate::context::Context;
use crate::report::{Failure, Report};

/// Deletes data and claims of interrupted puts.
pub(crate) fn reclaim(context: &Context) -> Result<Report, Failure> {
    let (done, down) = context.with_array_to_write(async |array: &Array| {
        Ok((object::reclaim(array).await?, array.down()))
    })?;
    let mut text = match (done.puts, done.claims) {
        (0, 0) => "nothing was left\n".to_owned(),
        (puts, claims) => format!("deleted what {puts} puts left, and {claims} claims\n"),
    };
    if done.kept > 0 {
        text += &format!(
            "kept the data of {} puts that no name refers to: it may belong to damaged names\n",
            done.kept
        );
    }
    let result = json!({ "puts": done.puts, "claims": done.claims, "kept": done.kept });
    Ok(Report::new(text, result).with_warnings(down))
}
