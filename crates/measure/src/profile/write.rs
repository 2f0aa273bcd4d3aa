//! Writer of profiles: from [`Profile`] to TOML, in the order of the contract's page.
//!
//! Writes no unknown number. Invariant: a written profile is read back as the same profile.

use std::fmt::Write as _;

use super::Profile;
use super::table::Table;

pub(super) fn profile(profile: &Profile) -> String {
    let mut out = format!("schema = {}\n", profile.schema);
    table(&mut out, "[meta]", &profile.meta);
    table(&mut out, "[host]", &profile.host);
    for (name, device) in &profile.device {
        table(&mut out, &format!("[device.{name}]"), device);
    }
    for point in &profile.point {
        table(&mut out, "[[point]]", point);
    }
    out
}

fn table(out: &mut String, header: &str, table: &impl Table) {
    let _infallible = write!(out, "\n{header}\n");
    for (key, value) in table.entries() {
        let _infallible = writeln!(out, "{key} = {value}");
    }
}
