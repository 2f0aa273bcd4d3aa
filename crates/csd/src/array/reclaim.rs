//! `csd array reclaim`.

use csd_store::array::Array;
use csd_store::object;
use serde_json::json;

use crate::context::Context;
use crate::report::{Failure, Report};
use crate::units::counted;

/// Deletes data and claims of interrupted puts.
pub(crate) fn reclaim(context: &Context) -> Result<Report, Failure> {
    let (done, down) = context.with_array_to_write(async |array: &Array| {
        Ok((object::reclaim(array).await?, array.down()))
    })?;
    let mut text = match (done.puts, done.claims) {
        (0, 0) => "nothing was left\n".to_owned(),
        (puts, claims) => {
            let (puts, claims) = (counted(puts as u64, "put"), counted(claims as u64, "claim"));
            format!("deleted what {puts} left, and {claims}\n")
        }
    };
    if done.kept > 0 {
        text += &format!(
            "kept the data of {} that no name refers to: it may belong to damaged names\n",
            counted(done.kept as u64, "put")
        );
    }
    let result = json!({ "puts": done.puts, "claims": done.claims, "kept": done.kept });
    Ok(Report::new(text, result).with_warnings(down))
}
