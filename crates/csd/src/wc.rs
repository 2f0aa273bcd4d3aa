//! `csd wc`: the lines, words and bytes of objects, counted in the drives, in the form of GNU wc.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_kernels::word_count::{self, Counts};
use csd_run::program::{Answer, Consumer, Native};
use serde_json::{Value, json};

use crate::cli::search::Wc;
use crate::context::Context;
use crate::escape::{escape, escape_lines};
use crate::over_text::{Failures, TextRun};
use crate::report::{Failure, Report, print};
use crate::run::look_up;

/// The counts of one object.
#[derive(Default)]
struct Counting(Mutex<Counts>);

impl Counting {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Consumer for Counting {
    fn take(&self, answer: Answer) -> ControlFlow<()> {
        let mut counts = self.counts();
        *counts = counts.then(Counts::from_result(answer.result));
        ControlFlow::Continue(())
    }
}

/// Lines, words and bytes.
#[derive(Clone, Copy, Default)]
struct Counted {
    lines: u64,
    words: u64,
    bytes: u64,
}

/// Counts the objects.
pub(crate) fn wc(options: &Wc, context: &Context) -> Result<Report, Failure> {
    let only_bytes = options.bytes && !options.lines && !options.words;
    let run = TextRun {
        context,
        place: options.place,
        native: Native { kernel: &word_count::KERNEL, emits: false },
        parameters: Vec::new(),
        room_bytes: |_| 4,
    };
    let (mut all, mut total, mut warnings) = (Vec::new(), Counted::default(), Vec::new());
    let mut failures = Failures::default();
    for name in &options.names {
        let done = if only_bytes { bytes(name, context) } else { count(name, &run) };
        let (counted, more) = match done {
            Ok(done) => done,
            Err(failure) => {
                failures.add((name, &options.names), failure, context)?;
                continue;
            }
        };
        total = Counted {
            lines: total.lines + counted.lines,
            words: total.words + counted.words,
            bytes: total.bytes + counted.bytes,
        };
        all.push((&name[..], counted));
        warnings.extend(more);
    }
    warnings.sort();
    warnings.dedup();
    let objects: Vec<Value> =
        all.iter().map(|(name, one)| described(name, *one, only_bytes)).collect();
    if options.names.len() > 1 {
        all.push(("total", total));
    }
    let text = text(options, &all, total.bytes);
    if let Some(failure) = failures.of(&options.names, &objects) {
        if !context.json {
            print(&escape_lines(&text));
        }
        return Err(failure);
    }
    Ok(Report::new(text, json!({ "objects": objects })).with_warnings(warnings))
}

/// Counts one object.
fn count(name: &str, run: &TextRun<'_>) -> Result<(Counted, Vec<String>), Failure> {
    let (counting, bytes, warnings) = run.over(name, || Ok(Arc::<Counting>::default()))?;
    let Counts { lines, words, .. } = *counting.counts();
    Ok((Counted { lines, words, bytes }, warnings))
}

/// Looks up the bytes of one object.
fn bytes(name: &str, context: &Context) -> Result<(Counted, Vec<String>), Failure> {
    let (_, entries, warnings) = look_up(context, vec![name.to_owned()])?;
    let bytes = entries.iter().map(|entry| entry.bytes).sum();
    Ok((Counted { bytes, ..Counted::default() }, warnings))
}

fn described(name: &str, counted: Counted, only_bytes: bool) -> Value {
    let some = |count: u64| (!only_bytes).then_some(count);
    let Counted { lines, words, bytes } = counted;
    json!({ "name": name, "lines": some(lines), "words": some(words), "bytes": bytes })
}

/// Formats counts as GNU wc does: numbers are as wide as that of all bytes, unless each line has
/// one number and there is one line.
fn text(options: &Wc, all: &[(&str, Counted)], total_bytes: u64) -> String {
    let wanted = [options.lines, options.words, options.bytes];
    let is_wanted = if wanted == [false; 3] { [true; 3] } else { wanted };
    let numbers = is_wanted.iter().filter(|wanted| **wanted).count();
    let is_alone = numbers == 1 && all.len() == 1;
    let width = if is_alone { 1 } else { total_bytes.to_string().len() };
    let line = |(name, one): &(&str, Counted)| {
        let numbers = [one.lines, one.words, one.bytes].into_iter().zip(is_wanted);
        let numbers = numbers.filter(|(_, wanted)| *wanted);
        let numbers: Vec<String> = numbers.map(|(one, _)| format!("{one:>width$}")).collect();
        format!("{} {}\n", numbers.join(" "), escape(name))
    };
    all.iter().map(line).collect()
}
