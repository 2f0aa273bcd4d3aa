//! Outcomes for people and for programs.

use csd_store::object::Stored;
use csd_store::run::{Answer, Outcome, Way};
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
        ("on", who(outcome)),
        ("time", duration(outcome.wall_s)),
        ("rate", rate(outcome.bytes, outcome.wall_s)),
        ("crossed", size(outcome.crossed_bytes)),
        ("shares", shares(outcome)),
    ])
}

fn of_many(name: &'static str, outcomes: &[Outcome]) -> String {
    let mut table = Table::new(&[
        ("on", Align::Left),
        (if outcomes[0].answer.digest.is_some() { "digest" } else { name }, Align::Right),
        ("wall", Align::Right),
        ("rate", Align::Right),
        ("crossed", Align::Right),
        ("shares of elements (busy)", Align::Left),
    ]);
    for outcome in outcomes {
        table.row(vec![
            who(outcome),
            answer(&outcome.answer),
            duration(outcome.wall_s),
            rate(outcome.bytes, outcome.wall_s),
            size(outcome.crossed_bytes),
            shares(outcome),
        ]);
    }
    table.render() + "answers agree\n"
}

fn who(outcome: &Outcome) -> String {
    match (outcome.way, outcome.cores) {
        (Way::Drives, _) => "drives".to_owned(),
        (way, 1) => format!("{way}, 1 core"),
        (way, cores) => format!("{way}, {cores} cores"),
    }
}

fn shares(outcome: &Outcome) -> String {
    let shares = outcome.shares.iter().map(|share| {
        let part = percent(share.elements, outcome.elements);
        format!("{} {part} ({})", share.who, duration(share.busy_s))
    });
    shares.collect::<Vec<_>>().join(", ")
}

/// An outcome for programs.
pub(super) fn describe(name: &str, outcome: &Outcome) -> Value {
    let shares = outcome.shares.iter().map(
        |share| json!({ "who": share.who, "elements": share.elements, "busy_s": share.busy_s }),
    );
    let mut run = json!({
        "on": outcome.way.to_string(),
        "cores": outcome.cores,
        name: outcome.answer.value,
        "wall_s": outcome.wall_s,
        "crossed_bytes": outcome.crossed_bytes,
        "shares": shares.collect::<Vec<_>>(),
    });
    if let Some(digest) = outcome.answer.digest {
        run["digest"] = format!("{digest:08x}").into();
    }
    if let Some(ranks) = &outcome.answer.ranks {
        run["iterations"] = ranks.iterations.into();
    }
    run
}
