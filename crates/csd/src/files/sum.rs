//! `csd sum`: digests of objects, of the bytes that `csd get` writes, and lists compared with them.
//!
//! Every byte is read from the drives; the digests in the catalogue are not taken. Invariant: lines
//! are in the order of the names, although several objects are read at once.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use csd_store::array::Array;
use csd_store::in_flight::{in_flight, share};
use csd_store::object::{self, Progress};
use serde_json::{Value, json};

use super::digest_list;
use super::hash::{Bytes, Function, digest};
use super::listing;
use crate::cli::files::Sum;
use crate::context::Context;
use crate::escape::escape_lines;
use crate::get::form_of;
use crate::progress::{Above, Bar};
use crate::report::{Class, Failure, Report, print};
use crate::runtime::Interrupt;
use crate::tally::Tally;
use crate::units::hex;

/// An object to read: its name in the list, and its digest there.
type Wanted = (String, Option<Bytes>);

/// Prints digests of objects, or compares them with a list.
pub(crate) fn sum(options: Sum, context: &Context) -> Result<Report, Failure> {
    let prefix = options.prefix.clone().unwrap_or_default();
    let wanted: Option<Vec<Wanted>> = match &options.check {
        Some(list) => {
            let digests = digest_list::parse(list, &read(list)?)?;
            Some(digests.into_iter().map(|(digest, name)| (name, Some(digest))).collect())
        }
        None if options.names.is_empty() => None,
        None => Some(options.names.iter().map(|name| (name.clone(), None)).collect()),
    };
    let interrupt = Interrupt::watch()?;
    let bar = Bar::new(context, "sum", None);
    let sums = Sums {
        prefix,
        raw: options.raw,
        is_check: options.check.is_some(),
        function: if options.blake3 { Function::Blake3 } else { Function::Sha256 },
        asked: Arc::clone(&interrupt.asked),
        progress: bar.progress.clone(),
    };
    let tally = Tally::over(context, &bar);
    let lines = Lines { above: bar.above(), silent: context.json, ..Lines::default() };
    let (lines, tally) = context
        .with_array(async move |array: &Array| sums.read(array, wanted, (lines, tally)).await)?;
    drop(bar);
    let (differing, count) = (lines.differing, lines.sums.len());
    let report = tally.finish(String::new(), json!({ "sums": lines.sums_in_order() }))?;
    match differing {
        0 => Ok(report),
        differing => {
            let message = format!("{differing} of {count} objects differ from the list");
            Err(Failure { detail: report.result, ..Failure::new(Class::Run, message) })
        }
    }
}

/// Reads objects and computes their digests.
struct Sums {
    prefix: String,
    raw: bool,
    /// True if there is a list to compare with.
    is_check: bool,
    function: Function,
    /// Set by a signal.
    asked: Arc<AtomicBool>,
    progress: Progress,
}

impl Sums {
    /// Reads what is wanted, by default all objects under the prefix, and prints their lines.
    async fn read(
        &self,
        array: &Array,
        wanted: Option<Vec<Wanted>>,
        (mut lines, mut tally): (Lines, Tally),
    ) -> Result<(Lines, Tally), Failure> {
        let wanted = match wanted {
            Some(wanted) => wanted,
            None => {
                let all = listing::under(array, &self.prefix).await?.into_iter();
                all.map(|entry| (entry.name[self.prefix.len()..].to_owned(), None)).collect()
            }
        };
        let is_asked = || self.asked.load(Relaxed);
        let mut waiting = wanted.into_iter().enumerate();
        // How long they are is not known yet.
        let one = |(index, (name, known)): (usize, Wanted)| {
            (share(u64::MAX), async move { (self.one(array, &name).await, index, name, known) })
        };
        let next = || if is_asked() { None } else { waiting.next().map(one) };
        in_flight(next, |(read, index, name, known)| match read {
            Ok((digest, warnings)) => {
                tally.done();
                tally.warn(warnings);
                lines.add(index, &name, digest, known);
            }
            Err(_) if is_asked() => tally.leave(&name),
            Err(failure) => {
                // An object that a list names and the array lacks is an answer of the check.
                let class = if self.is_check { Class::Run } else { failure.class };
                tally.fail(&name, Failure { class, ..failure });
                let line = if self.is_check { ": FAILED open or read\n" } else { "" };
                lines.push(index, if line.is_empty() { String::new() } else { name + line });
            }
        })
        .await;
        waiting.for_each(|(_, (name, _))| tally.leave(&name));
        Ok((lines, tally))
    }

    async fn one(&self, array: &Array, name: &str) -> Result<(Bytes, Vec<String>), Failure> {
        let entry = object::lookup(array, &format!("{}{name}", self.prefix)).await?;
        let form = form_of(&entry, name, self.raw);
        digest(array, entry, (form, self.function), &self.progress, &self.asked).await
    }
}

/// Reads a list.
fn read(list: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match list {
        "-" => std::io::stdin().read_to_string(&mut text).map(|_| text),
        path => std::fs::read_to_string(path),
    };
    read.map_err(|error| Failure::os(list, &error))
}

/// Lines that are printed in the order of the names.
#[derive(Default)]
struct Lines {
    above: Above,
    silent: bool,
    /// Number of the line to print next, and lines that wait for it.
    next: usize,
    waiting: BTreeMap<usize, String>,
    sums: BTreeMap<usize, Value>,
    /// Number of digests that differ from the list.
    differing: usize,
}

impl Lines {
    fn add(&mut self, index: usize, name: &str, digest: Bytes, known: Option<Bytes>) {
        let is_same = known.map(|known| known == digest);
        let mut sum = json!({ "name": name, "digest": hex(&digest) });
        if let Some(is_same) = is_same {
            sum["ok"] = is_same.into();
        }
        self.sums.insert(index, sum);
        self.differing += usize::from(is_same == Some(false));
        self.push(
            index,
            match is_same {
                None => digest_list::line(&digest, name),
                Some(true) => format!("{name}: OK\n"),
                Some(false) => format!("{name}: FAILED\n"),
            },
        );
    }

    fn push(&mut self, index: usize, line: String) {
        self.waiting.insert(index, line);
        while let Some(line) = self.waiting.remove(&self.next) {
            self.next += 1;
            if !self.silent && !line.is_empty() {
                self.above.print(|| print(&escape_lines(&line)));
            }
        }
    }

    fn sums_in_order(self) -> Vec<Value> {
        self.sums.into_values().collect()
    }
}
