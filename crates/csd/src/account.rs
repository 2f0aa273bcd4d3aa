//! Model time of runs, in a table of its own: wall time and model time are never in one row.

use csd_measure::account::{self, ModelTime};
use csd_measure::profile::Overlap;
use csd_run::Mode;
use csd_store::catalogue::Entry;
use serde_json::{Value, json};

use crate::cli::account::Account;
use crate::pace;
use crate::report::Failure;
use crate::table::{Align, Table};
use crate::units::duration;

/// Model times of runs, as text and as JSON.
pub(crate) struct ModelTimes {
    pub(crate) text: String,
    pub(crate) result: Value,
    pub(crate) warnings: Vec<String>,
}

/// Computes the model time of runs of `kernel` over objects. A run is a mode and a number of host
/// cores. Returns `None` if the user named no profile.
pub(crate) fn account(
    options: &Account,
    kernel: &str,
    inputs: &[Entry],
    runs: &[(Mode, usize)],
) -> Result<Option<ModelTimes>, Failure> {
    let Some(named) = &options.profile else { return Ok(None) };
    let (profile, device) = pace::load(named)?;
    let overlap = options.overlap.map(Overlap::from);
    let bytes = bytes_of_members(inputs);
    let mut table = Table::new(&[
        ("on", Align::Left),
        ("load", Align::Right),
        ("compute", Align::Right),
        ("model time", Align::Right),
        ("energy", Align::Right),
    ]);
    let (mut rows, mut warnings) = (Vec::new(), Vec::new());
    for &(mode, cores) in runs {
        let (on, rates) = match mode {
            Mode::Drives => ("drives".to_owned(), account::drive(&profile, &device, kernel)),
            Mode::Host => {
                let rates = account::host(&profile, &device, kernel, cores as u64);
                (format!("host, {cores} cores"), rates)
            }
            Mode::Split => {
                // The distribution of chunks depends on wall time.
                warnings.push("a split run has no model time".to_owned());
                continue;
            }
        };
        let Some(rates) = rates else {
            warnings.push(format!("the profile says nothing of {kernel} on {on} with {device}"));
            continue;
        };
        let rates = account::Rates { overlap: overlap.unwrap_or(rates.overlap), ..rates };
        let time = match mode {
            Mode::Host => account::host_time(&rates, &bytes, profile.host.ingest_bw_Bps),
            _ => account::drives_time(&rates, &bytes),
        };
        table.row(row(&on, &time));
        rows.push(describe(mode, &on, &time));
    }
    let overlap = overlap.map_or("as its points overlap", |overlap| match overlap {
        Overlap::Serial => "serial",
        Overlap::Pipelined => "pipelined",
    });
    let header = format!("\nmodel time by {named}, device {device}, {overlap}\n");
    let result = json!({ "profile": named, "device": device, "runs": rows });
    Ok(Some(ModelTimes { text: header + &table.render(), result, warnings }))
}

/// Returns the bytes of the objects on each member.
fn bytes_of_members(inputs: &[Entry]) -> Vec<u64> {
    let members = inputs.iter().map(|entry| entry.members.len()).max().unwrap_or(0);
    let of = |member: usize| {
        let held = inputs.iter().filter(|entry| member < entry.members.len()).map(|entry| {
            let layout = entry.layout();
            layout.range_bytes(member, 0, layout.count(member))
        });
        held.sum()
    };
    (0..members).map(of).collect()
}

fn row(on: &str, time: &ModelTime) -> Vec<String> {
    vec![
        on.to_owned(),
        duration(time.load_s),
        duration(time.comp_s),
        duration(time.total_s),
        time.joules.map_or_else(|| "-".to_owned(), |joules| format!("{joules:.2} J")),
    ]
}

fn describe(mode: Mode, on: &str, time: &ModelTime) -> Value {
    json!({
        "on": mode.to_string(),
        "system": on,
        "clock": "model",
        "load_s": time.load_s,
        "comp_s": time.comp_s,
        "total_s": time.total_s,
        "overlap": time.overlap,
        "energy_J": time.joules,
    })
}
