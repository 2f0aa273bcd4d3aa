//! The final output of a command, as text or JSON, and its exit code.
//!
//! Results go to standard output, everything else to standard error. Does not panic if a reader has
//! closed its end. Invariant: with `--json` exactly one object is printed, whatever happens.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;

use csd_store::fault::Fault;
use serde_json::{Value, json};

use crate::escape::escape_lines;
pub(crate) use crate::output::{ended, print, print_error};
use crate::room::{describe, takes};

/// Version of the JSON objects.
const SCHEMA: u32 = 1;

/// Result of a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// Text for people; may be empty.
    pub(crate) text: String,
    /// JSON value for programs.
    pub(crate) result: Value,
    /// Warnings of a command that succeeded.
    pub(crate) warnings: Vec<String>,
    /// True if a script must see the warnings: exit code 4.
    pub(crate) degraded: bool,
    /// Exit code of a command that passes on that of another one.
    pub(crate) exit_code: Option<u8>,
}

impl Report {
    /// Makes a report without warnings.
    pub(crate) fn new(text: impl Into<String>, result: Value) -> Self {
        Self { text: text.into(), result, ..Self::default() }
    }

    /// Adds a warning that a script must see.
    pub(crate) fn warn(&mut self, warning: String) {
        self.degraded = true;
        self.warnings.push(warning);
    }

    /// Sets the warnings; if there are any, a script must see them.
    pub(crate) fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.degraded = !warnings.is_empty();
        self.warnings = warnings;
        self
    }
}

/// Classes of failures; each has its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Run,
    Usage,
    Differ,
}

impl Class {
    fn exit_code(self) -> u8 {
        match self {
            Self::Run => 1,
            Self::Usage => 2,
            Self::Differ => 3,
        }
    }

    /// Returns the class of this failure and others together: that of all of them, if it is one.
    pub(crate) fn with(self, others: Option<Self>) -> Self {
        if others.is_none_or(|others| others == self) { self } else { Self::Run }
    }
}

/// Failure of a command.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) class: Class,
    pub(crate) message: String,
    /// Details for programs, or null.
    pub(crate) detail: Value,
    /// Name of the drive at fault, if it is one drive.
    pub(crate) drive: Option<String>,
    /// Exit code, if it is not that of the class.
    pub(crate) exit_code: Option<u8>,
}

impl Failure {
    pub(crate) fn new(class: Class, message: impl fmt::Display) -> Self {
        let message = message.to_string();
        Self { class, message, detail: Value::Null, drive: None, exit_code: None }
    }

    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Class::Usage, message)
    }

    pub(crate) fn run(message: impl fmt::Display) -> Self {
        Self::new(Class::Run, message)
    }

    /// Makes a failure of class "run" from an error of the operating system.
    pub(crate) fn os(what: impl fmt::Display, error: &io::Error) -> Self {
        Self::run(format!("{what}: {error}"))
    }

    fn exit_code(&self) -> u8 {
        self.exit_code.unwrap_or_else(|| self.class.exit_code())
    }

    /// Sets the drive at fault.
    fn of_drive(self, drive: Option<&str>) -> Self {
        Self { drive: drive.map(str::to_owned), ..self }
    }

    /// Makes a failure of the class that matches the fault.
    pub(crate) fn at_fault(fault: Fault, message: impl fmt::Display) -> Self {
        match fault {
            Fault::Usage => Self::usage(message),
            _ => Self::run(message),
        }
    }
}

impl From<csd_store::object::Error> for Failure {
    fn from(error: csd_store::object::Error) -> Self {
        let failure = Self::at_fault(error.fault(), &error).of_drive(error.drive());
        match error {
            csd_store::object::Error::Drive(csd_store::error::DriveError::Full {
                room: Some(room),
                ..
            }) => {
                let message = format!("{}; objects can take {}", failure.message, takes(&room));
                Self { message, detail: json!({ "room": describe(&room) }), ..failure }
            }
            csd_store::object::Error::Protection(csd_store::error::ProtectionError::Lost {
                ranges,
                ..
            }) => Self { detail: json!({ "lost": lost(&ranges) }), ..failure },
            csd_store::object::Error::Name(csd_store::error::NameError::Missing { name })
                if Path::new(&name).is_file() =>
            {
                let advice = "this is a file of this machine, which `csd put` stores";
                Self { message: format!("{}: {advice}", failure.message), ..failure }
            }
            _ => failure,
        }
    }
}

/// Describes ranges of bytes that cannot be read.
pub(crate) fn lost(ranges: &[Range<u64>]) -> Value {
    let range =
        |bytes: &Range<u64>| json!({ "start": bytes.start, "bytes": bytes.end - bytes.start });
    ranges.iter().map(range).collect::<Vec<_>>().into()
}

impl From<csd_store::catalogue::grow::Error> for Failure {
    fn from(error: csd_store::catalogue::grow::Error) -> Self {
        Self::at_fault(error.fault(), error)
    }
}

impl From<csd_store::array::Error> for Failure {
    fn from(error: csd_store::array::Error) -> Self {
        Self::at_fault(error.fault(), &error).of_drive(error.drive())
    }
}

impl From<csd_store::array::FileError> for Failure {
    fn from(error: csd_store::array::FileError) -> Self {
        Self::at_fault(error.fault(), error)
    }
}

impl From<csd_client::SettingsError> for Failure {
    fn from(error: csd_client::SettingsError) -> Self {
        Self::at_fault(if error.usage { Fault::Usage } else { Fault::Run }, error)
    }
}

impl From<csd_client::Error> for Failure {
    fn from(error: csd_client::Error) -> Self {
        use csd_client::Error::{Drive, KeyLength, NoNamespace, PieceKey, Settings};
        let usage = match &error {
            Settings(error) => error.usage,
            KeyLength(_) | PieceKey | NoNamespace { .. } => true,
            Drive(
                csd_initiator::Error::BadAddress { .. } | csd_initiator::Error::Misuse { .. },
            ) => true,
            _ => false,
        };
        Self::at_fault(if usage { Fault::Usage } else { Fault::Run }, &error)
    }
}

impl From<csd_run::Error> for Failure {
    fn from(error: csd_run::Error) -> Self {
        match error {
            csd_run::Error::Store(error) => error.into(),
            other => Self::at_fault(other.fault(), &other).of_drive(other.drive()),
        }
    }
}

impl From<csd_run::InvalidJob> for Failure {
    fn from(invalid: csd_run::InvalidJob) -> Self {
        Self::usage(invalid)
    }
}

impl From<csd_run::Failed> for Failure {
    fn from(failed: csd_run::Failed) -> Self {
        match failed {
            csd_run::Failed::Run(error) => error.into(),
            csd_run::Failed::Partial(partial) => {
                let (done, all) = (partial.done_bytes, partial.all_bytes);
                let detail = json!({ "partial": { "done_bytes": done, "bytes": all } });
                Self { detail, ..Self::run(partial) }
            }
            other => Self::run(other),
        }
    }
}

/// Style of the output.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Style {
    /// True for one JSON object.
    pub(crate) json: bool,
    /// True for results, warnings and errors only.
    pub(crate) quiet: bool,
    /// True to show drives with their URLs.
    pub(crate) verbose: bool,
}

/// Prints the outcome of `command` and returns its exit code.
pub(crate) fn finish(
    command: &str,
    outcome: Result<Report, Failure>,
    Style { json, quiet, verbose }: Style,
) -> ExitCode {
    let code = exit_code(&outcome);
    if json {
        // `drive serve` has no result at its end; it has printed its object before.
        if !matches!(&outcome, Ok(report) if report.result.is_null()) {
            print_json(command, &outcome);
        }
        return ended(code);
    }
    match outcome {
        Ok(report) => {
            // A run and a measurement are done for their figures.
            if !quiet || command.starts_with("run") || command.starts_with("bench") {
                print(&escape_lines(&report.text));
            }
            let warnings = report.warnings.iter();
            warnings
                .for_each(|warning| print_error(&format!("warning: {}", said(warning, verbose))));
        }
        Err(failure) => print_error(&format!("error: {}", said(&failure.message, verbose))),
    }
    ended(code)
}

/// Returns a message with its drives' URLs, or with only their hosts and ports.
fn said(message: &str, verbose: bool) -> Cow<'_, str> {
    if verbose { message.into() } else { places(message) }
}

/// Cuts every URL of a drive in a text to its host and port, or to the path of its socket. Quoted
/// URLs stay, because a user wrote them.
pub(crate) fn places(text: &str) -> Cow<'_, str> {
    const SCHEMES: [&str; 2] = ["nvme+tcp://", "nvme+unix://"];
    let first = |text: &str| SCHEMES.iter().filter_map(|s| Some((text.find(s)?, *s))).min();
    if first(text).is_none() {
        return Cow::Borrowed(text);
    }
    let (mut short, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((at, scheme)) = first(rest) {
        let (before, url) = (&rest[..at], &rest[at + scheme.len()..]);
        short.push_str(before);
        let end = url.find(|c: char| c.is_whitespace() || ")\",;".contains(c)).unwrap_or(url.len());
        // A colon at its end belongs to the sentence.
        let end = url[..end].trim_end_matches(':').len();
        match url[..end].split_once("/nqn.") {
            Some((place, _)) if !before.ends_with('"') => short.push_str(place),
            _ => short.extend([scheme, &url[..end]]),
        }
        rest = &url[end..];
    }
    short.push_str(rest);
    Cow::Owned(short)
}

/// Prints the JSON object.
pub(crate) fn print_json(command: &str, outcome: &Result<Report, Failure>) {
    print(&format!("{}\n", object(command, outcome)));
}

fn exit_code(outcome: &Result<Report, Failure>) -> u8 {
    match outcome {
        Ok(Report { exit_code: Some(code), .. }) => *code,
        Ok(report) if report.degraded => 4,
        Ok(_) => 0,
        Err(failure) => failure.exit_code(),
    }
}

/// Returns the JSON object of a command.
pub(crate) fn object(command: &str, outcome: &Result<Report, Failure>) -> Value {
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
            let exit_code = failure.exit_code();
            let mut error =
                json!({ "class": class, "exit_code": exit_code, "message": failure.message });
            if let Some(drive) = &failure.drive {
                error["drive"] = drive.as_str().into();
            }
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
        let differ = Failure::new(Class::Differ, "");
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
            "schema": 1, "command": "c",
            "error": { "class": "usage", "exit_code": 2, "message": "no" }
        });
        assert_eq!(object("c", &Err(Failure::usage("no"))), expected);
        let failure = Failure::run("no").of_drive(Some("d1"));
        assert_eq!(object("c", &Err(failure))["error"]["drive"], "d1");
    }

    #[test]
    fn drives_are_named_by_host_and_port() {
        let url = "nvme+tcp://127.0.0.1:44193/nqn.2026-11.io.csdstore:d1";
        for (long, short) in [
            (format!("drive d1 ({url}) is down"), "drive d1 (127.0.0.1:44193) is down"),
            (format!("drive {url}: lost; {url}"), "drive 127.0.0.1:44193: lost; 127.0.0.1:44193"),
            (format!("{url}?nsid=5"), "127.0.0.1:44193"),
            ("drive nvme+unix:///d.sock/nqn.x: lost".to_owned(), "drive /d.sock: lost"),
            ("nvme+tcp://x:1/y is none".to_owned(), "nvme+tcp://x:1/y is none"),
        ] {
            assert_eq!(said(&long, false), short);
            assert_eq!(said(&long, true), long);
        }
        let quoted = format!("object \"{url}\"");
        assert_eq!(said(&quoted, false), quoted);
    }
}
