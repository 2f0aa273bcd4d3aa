//! Frequencies of the lines, words or fields of objects, counted in the drives: [`top_k`] shows
//! the most frequent ones, [`histogram`] the distribution of those that are numbers.
//!
//! Each chunk is counted where it is; the host adds the counts, and counts the lines that cross the
//! ends of chunks. Counts are exact, so the different items of all objects are in this host's
//! memory, within a bound.

pub(crate) mod histogram;
pub(crate) mod top_k;

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_kernels::frequencies::{self, Item, Join, Unjoined};
use csd_run::program::{Answer, Consumer, Native};
use serde_json::{Value, json};

use crate::cli::search::{Items, Place};
use crate::context::Context;
use crate::escape::escape;
use crate::over_text::{Failures, TextRun};
use crate::report::Failure;

/// Memory for the different items of all objects, about.
const MEMORY_BYTES_MAX: usize = 1 << 30;

/// An item and how often it occurs.
type Counted = (Box<[u8]>, u64);

/// Counts of all objects.
struct Frequencies {
    counts: Vec<Counted>,
    /// Each object, for JSON.
    objects: Vec<Value>,
    failures: Failures,
    warnings: Vec<String>,
}

/// The counting of one object.
struct Counting(Mutex<State>);

struct State {
    join: Join,
    /// Why it ended early.
    ended: Option<Unjoined>,
}

impl Counting {
    fn new(item: Item) -> Self {
        Self(Mutex::new(State { join: Join::new(item, MEMORY_BYTES_MAX), ended: None }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the object; returns what was counted.
    fn end(&self, item: Item) -> Result<Join, Unjoined> {
        let mut state = self.state();
        let mut join = std::mem::replace(&mut state.join, Join::new(item, 0));
        match state.ended.take() {
            Some(why) => Err(why),
            None => join.end().map(|()| join),
        }
    }
}

impl Consumer for Counting {
    fn take(&self, answer: Answer) -> ControlFlow<()> {
        let mut state = self.state();
        if state.ended.is_none() {
            state.ended = state.join.add(&answer.output).err();
        }
        match state.ended {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }
}

/// Counts the items of all objects.
fn count(
    names: &[String],
    items: &Items,
    place: Place,
    context: &Context,
) -> Result<Frequencies, Failure> {
    let item = item(items);
    let run = TextRun {
        context,
        place,
        native: Native { kernel: &frequencies::KERNEL, emits: true },
        parameters: item.encode(),
        room_bytes: frequencies::answer_bytes_max,
    };
    let mut all = Join::new(item, MEMORY_BYTES_MAX);
    let (mut objects, mut warnings) = (Vec::new(), Vec::new());
    let mut failures = Failures::default();
    for name in names {
        let counted = run.over(name, || Ok(Arc::new(Counting::new(item))));
        let counted = counted.and_then(|(counting, bytes, more)| {
            let join = counting.end(item).map_err(|why| unjoined(name, why))?;
            Ok((join, bytes, more))
        });
        match counted {
            Ok((join, bytes, more)) => {
                all.merge(join).map_err(|why| unjoined(name, why))?;
                objects.push(json!({ "name": name, "bytes": bytes }));
                warnings.extend(more);
            }
            Err(failure) => failures.add((name, names), failure, context)?,
        }
    }
    warnings.sort();
    warnings.dedup();
    Ok(Frequencies { counts: all.into_counts(), objects, failures, warnings })
}

fn item(items: &Items) -> Item {
    match (items.words, items.field, items.delimiter) {
        (true, ..) => Item::Word,
        (false, None, _) => Item::Line,
        (false, Some(number), None) => Item::WordNumber(number),
        (false, Some(number), Some(separator)) => Item::Field { number, separator },
    }
}

fn unjoined(name: &str, why: Unjoined) -> Failure {
    let hint = match why {
        Unjoined::Memory(_) => ": count a field of the lines (--field), or fewer objects at a time",
        Unjoined::Long | Unjoined::Unreadable(_) => "",
    };
    Failure::run(format!("object {name:?}: {why}{hint}"))
}

/// Returns an item as text for people.
fn shown(item: &[u8]) -> String {
    escape(&String::from_utf8_lossy(item)).into_owned()
}
