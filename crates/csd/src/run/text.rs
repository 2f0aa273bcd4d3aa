//! Outcomes as text and JSON.

use csd_kernels::kernel::{self, Description};
use csd_run::{Answer, Mode, Outcome, Share};
use csd_store::object::Stored;
use serde_json::{Value, json};

use crate::object::amount;
use crate::table::{Align, Table, pairs};
use crate::units::{counted, duration, grouped, percent, rate, size};

/// Returns an answer's name and value for people.
pub(super) fn shown(answer: &Answer, described: &Description) -> (&'static str, String) {
    match (&answer.ranks, &described.shown) {
        (Some(ranks), _) => (described.name, counted(ranks.iterations.into(), "step")),
        (None, Some(shown)) => shown.clone(),
        (None, None) => (described.name, grouped(described.value)),
    }
}

/// Formats one outcome, or a table of several.
pub(super) fn of(
    describe: &dyn Fn(&Answer) -> Description,
    outcomes: &[Outcome],
    stored: Option<&Stored>,
) -> String {
    let text = match outcomes {
        [outcome] => of_one(&describe(&outcome.answer), outcome),
        outcomes => of_many(describe, outcomes),
    };
    let Some(Stored { entry, .. }) = stored else { return text };
    text + &format!("{}: {}\n", entry.name, amount(entry))
}

fn of_one(described: &Description, outcome: &Outcome) -> String {
    let main = shown(&outcome.answer, described);
    let fields = described.fields.iter().filter(|(name, _)| *name != main.0);
    let mut rows = vec![main.clone()];
    rows.extend(fields.map(|(name, value)| (*name, text_of(value))));
    rows.extend([
        ("elements", grouped(outcome.elements)),
        ("on", who(outcome.mode, outcome.cores)),
        ("time", duration(outcome.wall_s)),
        ("rate", rate(outcome.bytes, outcome.wall_s)),
        ("crossed", size(outcome.crossed_bytes)),
        ("shares", shares(&outcome.shares, outcome.elements)),
    ]);
    pairs(&rows)
}

fn of_many(describe: &dyn Fn(&Answer) -> Description, outcomes: &[Outcome]) -> String {
    let first = &outcomes[0].answer;
    let mut table = table_of_ways(shown(first, &describe(first)).0);
    for outcome in outcomes {
        table.row(vec![
            who(outcome.mode, outcome.cores),
            shown(&outcome.answer, &describe(&outcome.answer)).1,
            duration(outcome.wall_s),
            rate(outcome.bytes, outcome.wall_s),
            size(outcome.crossed_bytes),
            shares(&outcome.shares, outcome.elements),
        ]);
    }
    table.render() + "answers agree\n"
}

/// Formats a value of a description for people.
fn text_of(value: &kernel::Value) -> String {
    match value {
        kernel::Value::Count(count) => grouped(*count),
        kernel::Value::Text(text) => text.clone(),
        kernel::Value::None => "-".to_owned(),
    }
}

/// Converts a value of a description to JSON.
pub(super) fn json_of(value: &kernel::Value) -> Value {
    match value {
        kernel::Value::Count(count) => (*count).into(),
        kernel::Value::Text(text) => text.as_str().into(),
        kernel::Value::None => Value::Null,
    }
}

/// Returns an empty table of modes; `answer` heads the column of answers.
pub(crate) fn table_of_ways(answer: &'static str) -> Table {
    Table::new(&[
        ("on", Align::Left),
        (answer, Align::Right),
        ("wall", Align::Right),
        ("rate", Align::Right),
        ("crossed", Align::Right),
        ("shares of elements (busy)", Align::Left),
    ])
}

/// Names the mode, and the host's cores if they computed.
pub(crate) fn who(mode: Mode, cores: usize) -> String {
    match (mode, cores) {
        (Mode::Drives, _) => "drives".to_owned(),
        (mode, cores) => format!("{mode}, {}", counted(cores as u64, "core")),
    }
}

/// Formats the share of elements of each drive and the host.
pub(crate) fn shares(shares: &[Share], elements: u64) -> String {
    let shares = shares.iter().map(|share| {
        let part = percent(share.elements, elements);
        format!("{} {part} ({})", share.who, duration(share.busy_s))
    });
    shares.collect::<Vec<_>>().join(", ")
}

/// Describes the shares for JSON output.
pub(crate) fn describe_shares(shares: &[Share]) -> Vec<Value> {
    let describe = |share: &Share| {
        let Share { who, elements, busy_s } = share;
        json!({ "who": who, "elements": elements, "busy_s": busy_s })
    };
    shares.iter().map(describe).collect()
}

/// Describes an outcome for JSON output; `name` is the key of the main value.
pub(super) fn describe(name: &str, described: &Description, outcome: &Outcome) -> Value {
    let mut run = json!({
        "on": outcome.mode.to_string(),
        "cores": outcome.cores,
        name: described.value,
        "wall_s": outcome.wall_s,
        "crossed_bytes": outcome.crossed_bytes,
        "shares": describe_shares(&outcome.shares),
    });
    for (field, value) in &described.fields {
        run[*field] = json_of(value);
    }
    if let Some(ranks) = &outcome.answer.ranks {
        run["iterations"] = ranks.iterations.into();
    }
    run
}
