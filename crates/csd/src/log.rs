//! A drive's log on standard error, as lines for people or as JSON objects, one a line.
//!
//! Never anything to standard output, which is the command's answer. Invariant: an event is one
//! line whatever is in its fields, which hosts may have chosen.

use clap::ValueEnum;
use csd_drive::log::{Log, Record};
use serde_json::{Value, json};

use crate::clock::utc;
use crate::report::complain;

/// Form of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    Text,
    Json,
}

/// Most talkative level that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    Error,
    Warn,
    Info,
}

/// A log that writes to standard error.
pub(crate) fn sink(form: Form, level: Level) -> Log {
    let level = match level {
        Level::Error => csd_drive::log::Level::Error,
        Level::Warn => csd_drive::log::Level::Warn,
        Level::Info => csd_drive::log::Level::Info,
    };
    Log::new(level, move |record| {
        let time = utc();
        complain(&match form {
            Form::Text => text(&time, record),
            Form::Json => object(&time, record).to_string(),
        });
    })
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
    let record = Record { level: csd_drive::log::Level::Info, event: "e", fields: &fields };
    assert_eq!(text("t", &record), "t info e host=\"nqn.x\\nforged line\" queue=1");
    let object = object("t", &record);
    assert_eq!(object["host"], "nqn.x\nforged line");
    assert_eq!(object.to_string().lines().count(), 1);
}
