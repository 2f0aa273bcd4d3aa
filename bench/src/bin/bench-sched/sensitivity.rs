//! The numbers of client threads at which cases 2 and 3 cross, with each parameter as assumed, at
//! half and at twice its value.

use csd_bench::Error;
use csd_bench::record::Record;
use serde_json::json;

use crate::Arguments;
use crate::cases::{BTS, INLINE};
use crate::model::Model;
use crate::table::rounded;

/// Names a parameter of a model.
type Field = fn(&mut Model) -> &mut u64;

const FIELDS: [(&str, Field); 9] = [
    ("foreground work of a put", |model| &mut model.foreground_ns),
    ("background work of a put", |model| &mut model.background_ns),
    ("medium", |model| &mut model.medium_ns),
    ("network", |model| &mut model.network_ns),
    ("value on the link", |model| &mut model.link_ns),
    ("requests of a window", |model| &mut model.window),
    ("update of a window", |model| &mut model.published_update_ns),
    ("move of a task", |model| &mut model.move_ns),
    ("tasks that a core may owe", |model| &mut model.owed_max),
];

/// Part of the latency of `inline` from which on that of `bts` counts as another one: both are
/// equal where the link binds.
const DIFFERENCE: f64 = 0.005;

/// Numbers of threads at which `bts` is faster than `inline`, and at which it is slower.
struct Crossing {
    faster: Vec<usize>,
    slower: Vec<usize>,
}

/// Prints and records a row for each parameter.
pub(crate) fn sensitivity(
    arguments: &Arguments,
    model: Model,
    record: &mut Record,
) -> Result<(), Error> {
    let percent = DIFFERENCE * 100.0;
    println!("threads at which bts is faster, and slower, than inline by {percent} % and more");
    println!("(the paper: faster below 21, slower above)");
    println!("{:>26}  {:<40}twice", "", "half");
    let assumed = crossing(arguments, model);
    println!("{:>26}  {}", "as assumed", assumed.words());
    append(model, "as assumed", 1.0, &assumed, record)?;
    for (what, field) in FIELDS {
        let with = |change: fn(u64) -> u64| {
            let mut varied = model;
            let value = field(&mut varied);
            *value = change(*value);
            crossing(arguments, varied)
        };
        let (half, twice) = (with(|value| value / 2), with(|value| value * 2));
        println!("{what:>26}  {:<40}{}", half.words(), twice.words());
        append(model, what, 0.5, &half, record)?;
        append(model, what, 2.0, &twice, record)?;
    }
    Ok(())
}

/// Compares `bts` with `inline` at every number of threads.
fn crossing(arguments: &Arguments, model: Model) -> Crossing {
    let (mut faster, mut slower) = (Vec::new(), Vec::new());
    for threads in arguments.threads.clone() {
        let [inline, bts] =
            [INLINE, BTS].map(|case| arguments.outcome(model, case, threads).mean_us);
        if bts > inline * (1.0 + DIFFERENCE) {
            slower.push(threads);
        } else if bts < inline * (1.0 - DIFFERENCE) {
            faster.push(threads);
        }
    }
    Crossing { faster, slower }
}

impl Crossing {
    fn words(&self) -> String {
        let of = |what, threads: &[usize]| {
            (!threads.is_empty()).then(|| format!("{what} {}", ranges(threads)))
        };
        let parts = [of("faster", &self.faster), of("slower", &self.slower)];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "equal".to_owned() } else { parts.join("; ") }
    }
}

/// Writes ascending numbers, those that follow one another as a range.
fn ranges(numbers: &[usize]) -> String {
    let follow = |a: &usize, b: &usize| a + 1 == *b;
    let range = |of: &[usize]| match of {
        [first, .., last] => format!("{first}-{last}"),
        _ => of[0].to_string(),
    };
    numbers.chunk_by(follow).map(range).collect::<Vec<_>>().join(", ")
}

fn append(
    model: Model,
    what: &str,
    factor: f64,
    crossing: &Crossing,
    record: &mut Record,
) -> Result<(), Error> {
    record.append(json!({
        "bench": "sensitivity",
        "cores": model.cores,
        "background_us": rounded(model.background_ns as f64 / 1e3),
        "parameter": what,
        "factor": factor,
        "faster": ranges(&crossing.faster),
        "slower": ranges(&crossing.slower),
    }))
}
