//! What a command says at its end, to people or as JSON, and its exit code.
//!
//! Results go to standard output, everything else to standard error. Never panics when a reader
//! has gone away. Invariant: with `--json` exactly one object is printed, whatever happened.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use csd_store::fault::Fault;
use serde_json::{Value, json};

use crate::plain::plain_lines;

/// Version of the JSON objects.
const SCHEMA: u32 = 1;

/// What a command did.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// For people; empty when there is nothing to say.
    pub(crate) text: String,
    /// For programs.
    pub(crate) result: Value,
    /// What is not as it should be, although the command did what was asked.
    pub(crate) warnings: Vec<String>,
    /// Whether the warnings mean that something is degraded: exit code 4.
    pub(crate) degraded: bool,
}

impl Report {
    /// A report without warnings.
    pub(crate) fn new(text: impl Into<String>, result: Value) -> Self {
        Self { text: text.into(), result, ..Self::default() }
    }

    /// The same, degraded when there are warnings.
    pub(crate) fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.degraded = !warnings.is_empty();
        self.warnings = warnings;
        self
    }
}

/// Kinds of failure; each has its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Run,
    Usage,
    Differ,
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) class: Class,
    pub(crate) message: String,
    /// More for programs, or null.
    pub(crate) detail: Value,
}

impl Failure {
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self { class: Class::Usage, message: message.to_string(), detail: Value::Null }
    }

    pub(crate) fn run(message: impl fmt::Display) -> Self {
        Self { class: Class::Run, message: message.to_string(), detail: Value::Null }
    }

    /// A failure of the class that its fault has.
    pub(crate) fn at_fault(fault: Fault, message: impl fmt::Display) -> Self {
        match fault {
            Fault::Usage => Self::usage(message),
            _ => Self::run(message),
        }
    }
}

impl From<csd_store::object::Error> for Failure {
    fn from(error: csd_store::object::Error) -> Self {
        Self::at_fault(error.fault(), error)
    }
}

impl From<csd_store::catalogue::grow::Error> for Failure {
    fn from(error: csd_store::catalogue::grow::Error) -> Self {
        Self::at_fault(error.fault(), error)
    }
}

impl From<csd_store::array::Error> for Failure {
    fn from(error: csd_store::array::Error) -> Self {
        Self::at_fault(error.fault(), error)
    }
}

impl From<csd_store::array::FileError> for Failure {
    fn from(error: csd_store::array::FileError) -> Self {
        Self::usage(error)
    }
}

impl From<csd_store::run::Unfit> for Failure {
    fn from(unfit: csd_store::run::Unfit) -> Self {
        Self::usage(unfit)
    }
}

impl From<csd_store::run::Failed> for Failure {
    fn from(failed: csd_store::run::Failed) -> Self {
        match failed {
            csd_store::run::Failed::Run(error) => error.into(),
            csd_store::run::Failed::Partial(partial) => {
                let (done, all) = (partial.done_bytes, partial.all_bytes);
                let detail = json!({ "partial": { "done_bytes": done, "bytes": all } });
                Self { detail, ..Self::run(partial) }
            }
            other => Self::run(other),
        }
    }
}

/// Prints how `command` ended, and gives its exit code.
pub(crate) fn finish(
    command: &str,
    outcome: Result<Report, Failure>,
    (json, quiet): (bool, bool),
) -> ExitCode {
    let code = exit_code(&outcome);
    if json {
        // A command without a result, which is a drive that has stopped, has spoken before.
        if !matches!(&outcome, Ok(report) if report.result.is_null()) {
            print_json(command, &outcome);
        }
        return ExitCode::from(code);
    }
    match outcome {
        Ok(report) => {
            if !quiet || command.starts_with("run") {
                print(&plain_lines(&report.text));
            }
            report.warnings.iter().for_each(|warning| complain(&format!("warning: {warning}")));
        }
        Err(failure) => complain(&format!("error: {}", failure.message)),
    }
    ExitCode::from(code)
}

/// Prints the JSON object.
pub(crate) fn print_json(command: &str, outcome: &Result<Report, Failure>) {
    print(&format!("{}\n", object(command, outcome)));
}

/// Prints to standard output; a reader that has gone away wants nothing more.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _gone = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints a line to standard error, likewise, and fit for a terminal whatever is in it.
pub(crate) fn complain(text: &str) {
    let _gone = writeln!(io::stderr().lock(), "{}", plain_lines(text));
}

fn exit_code(outcome: &Result<Report, Failure>) -> u8 {
    match outcome {
        Ok(report) if report.degraded => 4,
        Ok(_) => 0,
        Err(Failure { class: Class::Run, .. }) => 1,
        Err(Failure { class: Class::Usage, .. }) => 2,
        Err(Failure { class: Class::Differ, .. }) => 3,
    }
}

fn object(command: &str, outcome: &Result<Report, Failure>) -> Value {
    match outcome {
        Ok(Report { result, warnings, .. }) => json!({
            "schema": SCHEMA,
            "command": command,
            "result": result,
            "warnings": warnings,
        }),
        Err(failure) => {
            let class = match failure.class {
                Class::Run => "run",
                Class::Usage => "usage",
                Class::Differ => "differ",
            };
            let mut error = json!({ "class": class, "message": failure.message });
            if !failure.detail.is_null() {
                error["detail"] = failure.detail.clone();
            }
            json!({ "schema": SCHEMA, "command": command, "error": error })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_the_documented_ones() {
        let fine = Report::new("", Value::Null);
        let degraded = Report::new("", Value::Null).with_warnings(vec!["d1 is down".to_owned()]);
        let differ = Failure { class: Class::Differ, message: String::new(), detail: Value::Null };
        assert_eq!(exit_code(&Ok(fine)), 0);
        assert_eq!(exit_code(&Err(Failure::run("x"))), 1);
        assert_eq!(exit_code(&Err(Failure::usage("x"))), 2);
        assert_eq!(exit_code(&Err(differ)), 3);
        assert_eq!(exit_code(&Ok(degraded)), 4);
    }

    #[test]
    fn json_has_a_result_or_an_error() {
        let report = Report::new("text", json!({ "count": 3 }));
        let expected =
            json!({ "schema": 1, "command": "c", "result": { "count": 3 }, "warnings": [] });
        assert_eq!(object("c", &Ok(report)), expected);
        let expected = json!({
            "schema": 1, "command": "c", "error": { "class": "usage", "message": "no" }
        });
        assert_eq!(object("c", &Err(Failure::usage("no"))), expected);
    }
}
