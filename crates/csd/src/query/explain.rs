//! The parts of a query and their places, in words and as JSON.

use datafusion::physical_plan::displayable;
use serde_json::{Value, json};

use super::Answered;
use super::scans::ScanRecord;
use crate::table::pairs;
use crate::units::{counted, duration, grouped, percent, size};

/// Row groups of a scan that drives refused and are described with their reasons.
const REFUSED_SHOWN: usize = 3;

/// Describes an answer for people.
pub(super) fn text(answered: &Answered) -> String {
    let mut text = format!("on {}:\n", answered.mode);
    for record in answered.scans.records() {
        text += &of_scan(&record);
    }
    let rows = counted(answered.rows() as u64, "row");
    text += &pairs(&[
        ("answer", rows),
        ("time", duration(answered.wall_s)),
        ("crossed", size(answered.scans.crossed_bytes())),
    ]);
    text += "plan of the host:\n";
    let plan = displayable(&*answered.plan).indent(false).to_string();
    plan.lines().for_each(|line| text += &format!("  {}\n", crate::escape::escape(line)));
    text
}

fn of_scan(record: &ScanRecord) -> String {
    let all = (record.row_groups + record.excluded) as u64;
    let excluded = match record.excluded {
        0 => grouped(all),
        excluded => format!("{} of {}: statistics exclude {excluded}", record.row_groups, all),
    };
    let steps = if record.steps.is_empty() { "all rows" } else { &record.steps };
    let who = match record.mode {
        csd_run::Mode::Host => "this host",
        _ => "drives",
    };
    let mut rows = vec![
        ("table", record.table.clone()),
        ("by", who.to_owned()),
        ("steps", steps.to_owned()),
        ("row groups", excluded),
        ("columns' bytes", size(record.bytes)),
        ("answers", size(record.answer_bytes)),
        (
            "crossed",
            format!(
                "{} ({})",
                size(record.crossed_bytes),
                percent(record.crossed_bytes, record.bytes)
            ),
        ),
        ("time", duration(record.wall_s)),
    ];
    let row_groups = &record.refused_row_groups;
    let shown = record.refused.iter().chain(row_groups.iter().take(REFUSED_SHOWN));
    rows.extend(shown.map(|why| ("host does", why.clone())));
    let more = row_groups.len().saturating_sub(REFUSED_SHOWN);
    if more > 0 {
        let more = counted(more as u64, "more row group");
        rows.push(("host does", format!("{more}; --json has all")));
    }
    pairs(&rows) + "\n"
}

/// Describes an answer for programs.
pub(super) fn describe(answered: &Answered) -> Value {
    let scans = answered.scans.records();
    let scans = scans.iter().map(|record| {
        let host_does = record.refused.iter().chain(&record.refused_row_groups);
        json!({
            "table": record.table,
            "on": record.mode.to_string(),
            "steps": record.steps,
            "row_groups": record.row_groups,
            "excluded_row_groups": record.excluded,
            "column_bytes": record.bytes,
            "answer_bytes": record.answer_bytes,
            "crossed_bytes": record.crossed_bytes,
            "wall_s": record.wall_s,
            "host_does": host_does.collect::<Vec<_>>(),
        })
    });
    json!({
        "on": answered.mode.to_string(),
        "wall_s": answered.wall_s,
        "crossed_bytes": answered.scans.crossed_bytes(),
        "scans": scans.collect::<Vec<_>>(),
    })
}
