//! `csd grep`: lines of objects in which a regular expression matches, found in the drives.
//!
//! Each chunk is searched where it is; the host searches the lines that cross the ends of chunks,
//! and prints lines as they come, in order. Exit codes are those of grep: 0 if a line was selected,
//! 1 if none was, 2 if something failed.

mod printer;
mod searching;

use std::sync::Arc;

use csd_kernels::search::{self, Matcher, Parameters, Wants};
use csd_run::program::Native;
use serde_json::{Value, json};

use crate::cli::search::Grep;
use crate::context::Context;
use crate::over_text::{Failures, TextRun};
use crate::report::{Failure, Report};
use printer::{Form, Printer};
use searching::Searching;

/// Exit codes of grep.
const FOUND: u8 = 0;
const NOT_FOUND: u8 = 1;
const FAILED: u8 = 2;

/// Searches the objects.
pub(crate) fn grep(options: &Grep, context: &Context) -> Result<Report, Failure> {
    search_all(options, context).map_err(|failure| Failure { exit_code: Some(FAILED), ..failure })
}

fn search_all(options: &Grep, context: &Context) -> Result<Report, Failure> {
    let parameters = parameters(options, context);
    let compiled = Matcher::new(&parameters.pattern, parameters.ignore_case);
    compiled.map_err(|why| Failure::usage(format!("pattern {:?}: {why}", options.pattern)))?;
    let form = Form::of(options, context);
    let run = TextRun {
        context,
        place: options.place,
        native: Native { kernel: &search::KERNEL, emits: true },
        parameters: parameters.encode(),
        room_bytes: search::answer_bytes_max,
    };
    let (mut done, mut failures) = (Vec::new(), Failures::default());
    let (mut warnings, mut is_found) = (Vec::new(), false);
    for name in &options.names {
        match search(&run, &parameters, form, name) {
            Ok(Searched { selected, bytes, warnings: more, is_closed }) => {
                is_found |= selected > 0;
                warnings.extend(more);
                done.push(described(name, selected, bytes, parameters.wants));
                // Nobody reads on, or wants to know more.
                if is_closed || (form.is_silent && is_found && !context.json) {
                    break;
                }
            }
            Err(failure) => failures.add((name, &options.names), failure, context)?,
        }
    }
    warnings.sort();
    warnings.dedup();
    if let Some(failure) = failures.of(&options.names, &done) {
        return Err(failure);
    }
    let result = json!({ "objects": done, "found": is_found });
    let exit_code = Some(if is_found { FOUND } else { NOT_FOUND });
    Ok(Report { exit_code, ..Report::new("", result).with_warnings(warnings) })
}

fn parameters(options: &Grep, context: &Context) -> Parameters {
    let pattern = match options.fixed_strings {
        true => search::literal(&options.pattern),
        false => options.pattern.clone(),
    };
    let wants = if options.names_only || (context.quiet && !context.json) {
        Wants::First
    } else if options.count || context.json {
        Wants::Count
    } else if options.line_number {
        Wants::Numbered
    } else {
        Wants::Lines
    };
    Parameters { pattern, ignore_case: options.ignore_case, invert: options.invert_match, wants }
}

/// An object that was searched.
struct Searched {
    selected: u64,
    bytes: u64,
    warnings: Vec<String>,
    /// True if the reader of standard output has closed its end.
    is_closed: bool,
}

/// Searches one object, and prints what was selected.
fn search(
    run: &TextRun<'_>,
    parameters: &Parameters,
    form: Form,
    name: &str,
) -> Result<Searched, Failure> {
    let printer = Printer::new(name, form);
    let (searching, bytes, warnings) = run.over(name, || {
        let join = search::Join::new(parameters).map_err(Failure::usage)?;
        Ok(Arc::new(Searching::new(join, Arc::clone(&printer), parameters.wants)))
    })?;
    let selected = searching.end()?;
    let is_closed = printer.end(selected)?;
    Ok(Searched { selected, bytes, warnings, is_closed })
}

/// Describes a searched object.
fn described(name: &str, selected: u64, bytes: u64, wants: Wants) -> Value {
    let lines = (wants != Wants::First).then_some(selected);
    json!({ "name": name, "bytes": bytes, "lines": lines, "found": selected > 0 })
}
