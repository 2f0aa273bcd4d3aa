//! A drive's log on standard error or in a file, as text lines or as JSON objects, one a line.
//!
//! Writes nothing to standard output, which has the command's result. Invariants: an event is one
//! line, even if hosts chose its fields; no core of a drive waits for the reader of standard error.

use std::io::{self, Write};
use std::sync::Arc;

use clap::ValueEnum;
use csd_drive::log::{Log, Record};
use csd_reactor::LineWriter;
use serde_json::{Value, json};

use crate::clock::utc;

/// Most bytes of lines that wait to be written; twice that for the drive's own events.
const WAITING_BYTES_MAX: usize = 256 << 10;

/// Format of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    Text,
    Json,
}

/// Least severe level that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    Error,
    Warn,
    Info,
}

/// Returns a log, and the queue of its lines until they are written to `target`.
///
/// # Errors
/// If its thread cannot be started.
pub(crate) fn sink(
    form: Form,
    level: Level,
    target: impl Write + Send + 'static,
) -> io::Result<(Log, Arc<LineWriter>)> {
    let level = match level {
        Level::Error => csd_drive::log::Level::Error,
        Level::Warn => csd_drive::log::Level::Warn,
        Level::Info => csd_drive::log::Level::Info,
    };
    let tell = move |dropped: u64| line(form, &lost(&[("lines", dropped.to_string())]));
    let writer = Arc::new(LineWriter::new(WAITING_BYTES_MAX, target, tell)?);
    let lines = Arc::clone(&writer);
    let log = Log::new(level, move |record| lines.put(&line(form, record), !record.rated));
    Ok((log, writer))
}

/// Returns the event that lines were dropped because the reader was too slow.
fn lost<'a>(fields: &'a [(&'static str, String)]) -> Record<'a> {
    let level = csd_drive::log::Level::Warn;
    Record { level, event: "lines of the log were lost", fields, rated: false }
}

fn line(form: Form, record: &Record<'_>) -> String {
    let time = utc();
    match form {
        Form::Text => text(&time, record),
        Form::Json => object(&time, record).to_string(),
    }
}

fn text(time: &str, record: &Record<'_>) -> String {
    let mut line = format!("{time} {} {}", record.level.name(), record.event);
    for (name, value) in record.fields {
        let plain = !value.is_empty()
            && value.chars().all(|c| c.is_ascii_graphic() && c != '"' && c != '\\' && c != '=');
        let value = if plain { value.clone() } else { format!("{value:?}") };
        line.push_str(&format!(" {name}={value}"));
    }
    line
}

fn object(time: &str, record: &Record<'_>) -> Value {
    let mut object = json!({ "time": time, "level": record.level.name(), "event": record.event });
    for (name, value) in record.fields {
        object[*name] = Value::from(value.as_str());
    }
    object
}

#[test]
fn an_event_is_one_line_whatever_a_host_calls_itself() {
    let fields = [("host", "nqn.x\nforged line".to_owned()), ("queue", "1".to_owned())];
    let record =
        Record { level: csd_drive::log::Level::Info, event: "e", fields: &fields, rated: true };
    assert_eq!(text("t", &record), "t info e host=\"nqn.x\\nforged line\" queue=1");
    let object = object("t", &record);
    assert_eq!(object["host"], "nqn.x\nforged line");
    assert_eq!(object.to_string().lines().count(), 1);
}

#[test]
fn a_line_in_either_form_is_no_longer_than_is_counted() {
    let nasty: String = (0..0x300).chain(0x2000..0x2100).filter_map(char::from_u32).collect();
    for value in [String::new(), "plain".to_owned(), "\0\u{202e}\u{10fff0}".repeat(30), nasty] {
        let fields = [("host", value), ("queue", "1".to_owned())];
        let level = csd_drive::log::Level::Error;
        let record = Record { level, event: "queue connected", fields: &fields, rated: true };
        for form in [Form::Text, Form::Json] {
            let bytes = line(form, &record).len() as u64 + 1;
            assert!(bytes <= record.bytes_max(), "{bytes} > {}", record.bytes_max());
        }
    }
}
