//! A row for each number of client threads: every case, and how `adaptive` compares with the
//! others.

use csd_bench::Error;
use csd_bench::record::Record;
use serde_json::{Map, Value, json};

use crate::Arguments;
use crate::cases::{ADAPTIVE, CASES, OTHER_RULES, POLICIES};
use crate::model::{Model, Outcome};

/// `adaptive` over the best of some other cases; `None` if there is nothing to compare.
type Ratio = Option<f64>;

/// Figure that a row compares.
#[derive(Clone, Copy)]
enum Figure {
    Mean,
    AfterChange,
}

/// The figures, each over the other policies, and over all other rules; with names for people and
/// in the record.
const COMPARED: [(&str, &str, Figure, &[usize]); 4] = [
    ("mean", "over_best", Figure::Mean, &POLICIES),
    ("mean, all rules", "over_best_rule", Figure::Mean, &OTHER_RULES),
    ("after a change", "over_best_after_change", Figure::AfterChange, &POLICIES),
    ("after a change, all rules", "over_best_rule_after_change", Figure::AfterChange, &OTHER_RULES),
];

/// Prints and records all rows.
pub(crate) fn table(arguments: &Arguments, model: Model, record: &mut Record) -> Result<(), Error> {
    println!("mean and p99 latency of a request, us; background tasks done for each put");
    println!("in phases, also the mean of the first {} requests after a change", model.window);
    println!("{:>7}{}", "threads", CASES.map(|case| format!("{:>32}", case.name)).concat());
    let mut worst = [(None, 0); COMPARED.len()];
    for threads in arguments.threads.clone() {
        let outcomes = CASES.map(|case| arguments.outcome(model, case, threads));
        println!("{threads:>7}{}", outcomes.each_ref().map(shown).concat());
        let ratios = COMPARED.map(|(_, _, figure, others)| ratio(&outcomes, figure, others));
        for (worst, ratio) in worst.iter_mut().zip(ratios) {
            if ratio > worst.0 {
                *worst = (ratio, threads);
            }
        }
        append(arguments, model, threads, &outcomes, record)?;
    }
    for ((what, ..), (ratio, threads)) in COMPARED.iter().zip(worst) {
        let Some(ratio) = ratio else { continue };
        println!("adaptive over the best other, {what}: at worst {ratio:.3}, {threads} threads");
    }
    Ok(())
}

fn shown(of: &Outcome) -> String {
    let after = of.after_change_us.map_or_else(String::new, |us| format!("{us:.1}"));
    format!("{:>9.1} {:>8.1} {:>5.2} {after:>7}", of.mean_us, of.p99_us, of.done_per_put)
}

fn ratio(outcomes: &[Outcome; CASES.len()], figure: Figure, others: &[usize]) -> Ratio {
    let of = |case: usize| match figure {
        Figure::Mean => Some(outcomes[case].mean_us),
        Figure::AfterChange => outcomes[case].after_change_us,
    };
    let best = others.iter().filter_map(|case| of(*case)).min_by(f64::total_cmp)?;
    Some(of(ADAPTIVE)? / best)
}

fn append(
    arguments: &Arguments,
    model: Model,
    threads: usize,
    outcomes: &[Outcome; CASES.len()],
    record: &mut Record,
) -> Result<(), Error> {
    let case = |of: &Outcome| {
        json!({
            "mean_us": rounded(of.mean_us),
            "p99_us": rounded(of.p99_us),
            "after_change_us": of.after_change_us.map(rounded),
            "requests_per_s": of.requests_per_s,
            "done_per_put": rounded(of.done_per_put),
        })
    };
    let named = CASES.iter().zip(outcomes).map(|(of, outcome)| (of.name.to_owned(), case(outcome)));
    let mut result = json!({
        "bench": "sched",
        "cores": model.cores,
        "shape": format!("{:?}", arguments.shape).to_lowercase(),
        "gets_percent": arguments.gets,
        "background_us": rounded(model.background_ns as f64 / 1e3),
        "foreground_us": rounded(model.foreground_ns as f64 / 1e3),
        "threads": threads,
        "seeds": arguments.seeds,
        "cases": named.collect::<Map<String, Value>>(),
    });
    for (_, name, figure, others) in COMPARED {
        result[name] = ratio(outcomes, figure, others).map(rounded).into();
    }
    record.append(result)
}

/// Rounds to three digits after the point.
pub(crate) fn rounded(figure: f64) -> f64 {
    (figure * 1e3).round() / 1e3
}
