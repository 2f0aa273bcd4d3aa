//! `csd bench ec`: erasure coding on the host and in drives.
//!
//! Modules: `cases` is what is measured, `pace` is the pace of the drives, `published` is what the
//! paper prints, `files` writes the results. Invariant: a measured and a published number never
//! stand in one row.

mod cases;
mod files;
mod pace;
mod published;

use std::path::Path;

use csd_bench::ec::{self, Plan, Row};
use csd_bench::isal::{self, Erasure};
use csd_bench::record;
use csd_bench::serve::Options;
use serde_json::{Value, json};

use super::{LAUNCH, failure, keep, measured, unpinned};
use crate::cli::bench_ec::Ec;
use crate::context::Context;
use crate::report::{Failure, Report};
use crate::table::{Align, Table};
use crate::target;
use pace::Pace;

/// Measures, writes and reports.
pub(super) fn ec(options: &Ec, context: &Context) -> Result<Report, Failure> {
    let pace = Pace::load(&options.pace)?;
    let cases = cases::cases(options, pace.as_ref())?;
    for path in [&options.output, &options.write_profile].into_iter().flatten() {
        target::check(path)?;
        if !cases.iter().any(files::is_point) {
            let why = "takes times at power 1: add 1 to --drive-power and --host-power";
            return Err(Failure::usage(format!("{}: it {why}", path.display())));
        }
    }
    let record = options.record.open().map_err(failure)?;
    let (isal, left_out) = load(options.isal.as_deref())?;
    let plan = Plan {
        cases,
        rounds: usize::try_from(options.rounds).map_err(Failure::usage)?,
        drives: options.drives.into(),
        isal,
        options: Options { backend: options.backend.to_string(), ..Options::default() },
        launch: LAUNCH,
    };
    let machine = record::machine();
    let rows = measured(context, move |stop, progress| ec::measure(&plan, stop, progress))?;
    if let Some(path) = &options.output {
        target::replace(path, &files::points(&rows))?;
    }
    if let Some(path) = &options.write_profile {
        files::write_profile(path, &rows, &options.pace)?;
    }
    let mut report = Report::new(
        text(options, &machine, &rows, &left_out),
        result(options, &machine, &rows, &left_out),
    );
    warn(&mut report, &rows);
    let lines = rows.iter().map(|row| {
        let mut line = row.describe();
        (line["pace"], line["drives"]) = (options.pace.as_str().into(), options.drives.into());
        line
    });
    keep(record, lines, &mut report);
    Ok(report)
}

/// Loads libisal; without it, returns the reason in words.
fn load(path: Option<&Path>) -> Result<(Option<Erasure>, Vec<String>), Failure> {
    let name = path.map_or(isal::LIBRARY.into(), |path| path.to_string_lossy());
    match (Erasure::load(&name, "ec_encode_data"), path) {
        (Some(erasure), _) => Ok((Some(erasure), Vec::new())),
        (None, Some(_)) => {
            let why = "cannot be loaded, or is not ISA-L: name its shared library";
            Err(Failure::usage(format!("--isal: {name} {why}")))
        }
        (None, None) => {
            let why = "cannot be loaded (Debian: libisal2); --isal names another library";
            Ok((None, vec![format!("isal was not measured: {name} {why}")]))
        }
    }
}

fn warn(report: &mut Report, rows: &[Row]) {
    let scattered = rows.iter().filter(|row| row.is_inconclusive()).count();
    if scattered > 0 {
        report.warn(format!(
            "{scattered} rows are inconclusive: no second round comes within 15 % of the host's \
             fastest, or the drive's times scatter by more than that; measure when the machine is \
             less busy"
        ));
    }
    let behind = rows.iter().filter(|row| row.is_behind()).count();
    if behind > 0 {
        report.warn(format!(
            "in {behind} rows the drives are behind their pace, so their time is this machine's: \
             take fewer --drives or less --drive-power, or measure when the machine is less busy"
        ));
    }
    report.warnings.extend(unpinned());
}

fn text(options: &Ec, machine: &str, rows: &[Row], left_out: &[String]) -> String {
    let Ec { rounds, drives, pace, .. } = options;
    let mut measured = Table::new(&[
        ("blocks", Align::Right),
        ("MB", Align::Right),
        ("host's code", Align::Left),
        ("drive power", Align::Right),
        ("host power", Align::Right),
        ("host s", Align::Right),
        ("drive s", Align::Right),
        ("break-even drives", Align::Right),
    ]);
    for row in rows {
        measured.row(vec![
            row.case.shape.blocks().to_string(),
            row.case.shape.block_mb().to_string(),
            row.encoder.name().to_owned(),
            row.case.drive_power.to_string(),
            format!("{:.3}", row.case.host_power),
            format!("{:.4}", row.host_s),
            format!("{:.4}", row.drive_s[1]),
            row.devices().to_string(),
        ]);
    }
    let mut text = format!(
        "{machine}, at least {rounds} rounds, {drives} drives, pace {pace}\nMeasured\n{}",
        measured.render()
    );
    for line in left_out {
        text += &format!("{line}\n");
    }
    let mut printed = Table::new(&[
        ("blocks", Align::Right),
        ("MB", Align::Right),
        ("host s", Align::Right),
        ("drive s", Align::Right),
        ("break-even drives", Align::Right),
    ]);
    for point in published::points() {
        printed.row(vec![
            point.blocks.to_string(),
            point.block_mb.to_string(),
            point.ssd_s.to_string(),
            point.csd_s.to_string(),
            point.devices().to_string(),
        ]);
    }
    text + &format!("Published ({})\n{}", published::SOURCE, printed.render())
}

fn result(options: &Ec, machine: &str, rows: &[Row], left_out: &[String]) -> Value {
    let published = published::points();
    json!({
        "machine": machine,
        "pinned": csd_bench::cpus::can_pin(),
        "rounds": options.rounds,
        "drives": options.drives,
        "pace": options.pace,
        "measured": rows.iter().map(Row::describe).collect::<Vec<Value>>(),
        "published": published.iter().map(published::Point::describe).collect::<Vec<Value>>(),
        "left_out": left_out,
    })
}
