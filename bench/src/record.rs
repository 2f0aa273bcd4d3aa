//! Results as JSON lines, with the machine and the arguments of the program that measured them.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use csd_measure::machine::limits_text;
use serde_json::Value;

use crate::{Error, cpus};

/// Option of programs that record their results.
#[derive(Args, Clone, Debug)]
pub struct Destination {
    /// Also append the results to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

impl Destination {
    /// Opens the file; it is created if it does not exist. If it is opened before a measurement, a
    /// wrong path does not cost a whole one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn open(&self) -> Result<Record, Error> {
        let open = |path: &PathBuf| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let file = file.map_err(Error::system(path.display().to_string()))?;
            Ok((path.clone(), file))
        };
        self.record.as_ref().map(open).transpose().map(Record)
    }
}

/// A file of JSON lines, open for appending, if one is wanted.
#[derive(Debug)]
pub struct Record(Option<(PathBuf, File)>);

impl Record {
    /// Appends one result, a JSON object, with the machine and this program's arguments.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn append(&mut self, mut result: Value) -> Result<(), Error> {
        let Some((path, file)) = &mut self.0 else { return Ok(()) };
        result["machine"] = machine().into();
        let arguments = std::env::args_os().skip(1);
        result["arguments"] =
            arguments.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().into();
        // One write, so that lines of several programs do not mix.
        let line = format!("{result}\n");
        let before = file.metadata().map_or(0, |metadata| metadata.len());
        file.write_all(line.as_bytes()).map_err(|error| {
            // On a full disk no part of a line stays. No other program writes then.
            let _kept = file.set_len(before);
            Error::system(format!("cannot write {}", path.display()))(error)
        })
    }
}

/// Describes the machine: processor, load, pinning, and limits of this process.
pub fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("");
    let model = model.trim_start_matches(['\t', ' ', ':']);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?");
    let pinned = if cpus::can_pin() { "servers pinned" } else { "not pinned" };
    let limits = limits_text().map_or_else(String::new, |limits| format!(", {limits}"));
    format!("{model}, load {load}, {pinned}{limits}")
}
