//! Outcomes for people and for programs.

use csd_store::object::Stored;
use csd_store::run::{Answer, Outcome, Share, Way};
use serde_json::{Value, json};

use crate::table::{Align, Table, pairs};
use crate::units::{duration, grouped, percent, rate, size};

/// An answer in few words.
pub(super) fn answer(answer: &Answer) -> String {
    if let Some(digest) = answer.digest {
        return format!("{digest:08x}");
    }
    match &answer.ranks {
        Some(ranks) => format!("{} steps", grouped(ranks.iterations.into())),
        None => grouped(answer.value),
    }
}

/// One outcome, or several side by side; `name` says what the answer is.
pub(super) fn of(name: &'static str, outcomes: &[Outcome], stored: Option<&Stored>) -> String {
    let text = match outcomes {
        [outcome] => of_one(name, outcome),
        outcomes => of_many(name, outcomes),
    };
    let Some(Stored { entry, .. }) = stored else { return text };
    let (elements, bytes) = (grouped(entry.elements()), size(entry.bytes));
    text + &format!("{}: {elements} {}, {bytes}\n", entry.name, entry.element)
}

fn of_one(name: &'static str, outcome: &Outcome) -> String {
    let named = if outcome.answer.digest.is_some() { "digest" } else { name };
    pairs(&[
        (named, answer(&outcome.answer)),
        ("elements", grouped(outcome.elements)),
        ("on", who(outcome.way, outcome.cores)),
        ("time", duration(outcome.wall_s)),
        ("rate", rate(outcome.bytes, outcome.wall_s)),
        ("crossed", size(outcome.crossed_bytes)),
        ("shares", shares(&outcome.shares, outcome.elements)),
    ])
}

fn of_many(name: &'static str, outcomes: &[Outcome]) -> String {
    let mut table =
        table_of_ways(if outcomes[0].answer.digest.is_some() { "digest" } else { name });
    for outcome in outcomes {
        table.row(vec![
            who(outcome.way, outcome.cores),
            answer(&outcome.answer),
            duration(outcome.wall_s),
            rate(outcome.bytes, outcome.wall_s),
            size(outcome.crossed_bytes),
            shares(&outcome.shares, outcome.elements),
        ]);
    }
    table.render() + "answers agree\n"
}

/// An empty table of ways to run, whose answers have this name.
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

/// Who computed.
pub(crate) fn who(way: Way, cores: usize) -> String {
    match (way, cores) {
        (Way::Drives, _) => "drives".to_owned(),
        (way, 1) => format!("{way}, 1 core"),
        (way, cores) => format!("{way}, {cores} cores"),
    }
}

/// Who did how much of so many elements.
pub(crate) fn shares(shares: &[Share], elements: u64) -> String {
    let shares = shares.iter().map(|share| {
        let part = percent(share.elements, elements);
        format!("{} {part} ({})", share.who, duration(share.busy_s))
    });
    shares.collect::<Vec<_>>().join(", ")
}

/// Who did how much, for programs.
pub(crate) fn describe_shares(shares: &[Share]) -> Vec<Value> {
    let describe = |share: &Share| {
        let Share { who, elements, busy_s } = share;
        json!({ "who": who, "elements": elements, "busy_s": busy_s })
    };
    shares.iter().map(describe).collect()
}

/// An outcome for programs.
pub(super) fn describe(name: &str, outcome: &Outcome) -> Value {
    let mut run = json!({
        "on": outcome.way.to_string(),
        "cores": outcome.cores,
        name: outcome.answer.value,
        "wall_s": outcome.wall_s,
        "crossed_bytes": outcome.crossed_bytes,
        "shares": describe_shares(&outcome.shares),
    });
    if let Some(digest) = outcome.answer.digest {
        run["digest"] = format!("{digest:08x}").into();
    }
    if let Some(ranks) = &outcome.answer.ranks {
        run["iterations"] = ranks.iterations.into();
    }
    run
}
