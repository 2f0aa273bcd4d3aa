//! `csd run count`: one way, or all three side by side.

use std::sync::Arc;

use csd_store::array::{Array, Plan};
use csd_store::object;
use csd_store::run::{self, Job, Outcome, Way};
use serde_json::{Value, json};

use crate::account::account;
use crate::cli::{Count, Who};
use crate::context::{Context, options as connection, runtime, with_plan};
use crate::progress::Bar;
use crate::report::{Class, Failure, Report};
use crate::table::{Align, Table, pairs};
use crate::units::{duration, grouped, percent, rate, size};

/// Counts, and compares if asked to.
pub(crate) fn count(options: &Count, context: &Context) -> Result<Report, Failure> {
    let plan = context.plan()?;
    let name = options.name.clone();
    let (entry, warnings) = with_plan(&plan, async move |array: &Array| {
        Ok((object::lookup(array, &name).await?, array.down()))
    })?;
    let job = Job::count(entry, &options.equal).map_err(|error| {
        Failure::usage(format!("--equal {}: {error} (object {:?})", options.equal, options.name))
    })?;
    let job = Arc::new(job);
    let ways = ways(options.on, options.check);
    let cores = usize::from(options.cores.unwrap_or(1));
    let outcomes = ways
        .iter()
        .map(|&way| one(&plan, &job, (way, cores), context))
        .collect::<Result<Vec<_>, _>>()?;
    compare(&outcomes)?;
    let mut text = match outcomes.as_slice() {
        [outcome] => text_of_one(outcome),
        outcomes => text_of_many(outcomes),
    };
    let mut result = json!({
        "object": options.name,
        "kernel": "count",
        "equal": options.equal,
        "type": job.entry.element.name(),
        "count": outcomes[0].count,
        "elements": job.entry.elements(),
        "bytes": job.entry.bytes,
        "checked": outcomes.len() > 1,
    });
    result["runs"] = outcomes.iter().map(describe).collect::<Vec<_>>().into();
    let runs: Vec<_> = outcomes.iter().map(|outcome| (outcome.way, outcome.cores)).collect();
    let mut notes = Vec::new();
    if let Some(accounted) = account(&options.account, "count", &job.entry, &runs)? {
        text.push_str(&accounted.text);
        result["model"] = accounted.result;
        notes = accounted.warnings;
    }
    let mut report = Report::new(text, result).with_warnings(warnings);
    report.warnings.extend(notes);
    Ok(report)
}

/// The way that was asked for comes first, then those it is checked against.
fn ways(on: Who, check: bool) -> Vec<Way> {
    let all = [Way::Drives, Way::Host, Way::Split];
    let asked = match on {
        Who::All => return all.to_vec(),
        Who::Drives => Way::Drives,
        Who::Host => Way::Host,
        Who::Split => Way::Split,
    };
    let mut ways = vec![asked];
    if check {
        ways.extend([Way::Drives, Way::Host].into_iter().filter(|&way| way != asked));
    }
    ways
}

fn one(
    plan: &Plan,
    job: &Arc<Job>,
    how: (Way, usize),
    context: &Context,
) -> Result<Outcome, Failure> {
    let bar = Bar::new(context, &format!("on {}", how.0), Some(job.entry.bytes));
    Ok(run::run(&runtime(), plan, &connection(), job, how, &bar.progress)?)
}

/// Different answers are a failure of their own: somebody computed wrongly.
fn compare(outcomes: &[Outcome]) -> Result<(), Failure> {
    if outcomes.windows(2).all(|pair| pair[0].count == pair[1].count) {
        return Ok(());
    }
    let answers: Vec<_> = outcomes.iter().map(|o| format!("{}: {}", o.way, o.count)).collect();
    Err(Failure {
        class: Class::Differ,
        message: format!("answers differ: {}", answers.join(", ")),
        detail: outcomes.iter().map(describe).collect::<Vec<_>>().into(),
    })
}

fn text_of_one(outcome: &Outcome) -> String {
    pairs(&[
        ("count", grouped(outcome.count)),
        ("elements", grouped(outcome.elements)),
        ("on", who(outcome)),
        ("time", duration(outcome.wall_s)),
        ("rate", rate(outcome.bytes, outcome.wall_s)),
        ("crossed to the host", size(outcome.crossed_bytes)),
        ("shares", shares(outcome)),
    ])
}

fn text_of_many(outcomes: &[Outcome]) -> String {
    let mut table = Table::new(&[
        ("on", Align::Left),
        ("count", Align::Right),
        ("wall", Align::Right),
        ("rate", Align::Right),
        ("crossed to host", Align::Right),
        ("shares of elements (busy)", Align::Left),
    ]);
    for outcome in outcomes {
        table.row(vec![
            who(outcome),
            grouped(outcome.count),
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

fn describe(outcome: &Outcome) -> Value {
    let shares = outcome.shares.iter().map(
        |share| json!({ "who": share.who, "elements": share.elements, "busy_s": share.busy_s }),
    );
    json!({
        "on": outcome.way.to_string(),
        "cores": outcome.cores,
        "count": outcome.count,
        "wall_s": outcome.wall_s,
        "crossed_bytes": outcome.crossed_bytes,
        "shares": shares.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(way: Way, count: u64) -> Outcome {
        Outcome {
            way,
            cores: 1,
            count,
            elements: 8,
            bytes: 32,
            wall_s: 1.0,
            crossed_bytes: 24,
            shares: Vec::new(),
        }
    }

    #[test]
    fn a_check_adds_the_ways_that_were_not_asked_for() {
        use Way::{Drives, Host, Split};
        assert_eq!(ways(Who::Drives, false), [Drives]);
        assert_eq!(ways(Who::Drives, true), [Drives, Host]);
        assert_eq!(ways(Who::Host, true), [Host, Drives]);
        assert_eq!(ways(Who::Split, true), [Split, Drives, Host]);
        assert_eq!(ways(Who::All, false), [Drives, Host, Split]);
    }

    #[test]
    fn answers_that_differ_are_a_failure_with_all_of_them() {
        assert!(compare(&[outcome(Way::Drives, 3)]).is_ok());
        assert!(compare(&[outcome(Way::Drives, 3), outcome(Way::Host, 3)]).is_ok());
        let failure =
            compare(&[outcome(Way::Drives, 3), outcome(Way::Host, 4), outcome(Way::Split, 3)])
                .unwrap_err();
        assert_eq!(failure.class, Class::Differ);
        assert_eq!(failure.message, "answers differ: drives: 3, host: 4, split: 3");
    }
}
