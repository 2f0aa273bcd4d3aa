//! Results as JSON lines, with the machine and the arguments of the program that measured them.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Error, cpus};

/// A file of JSON lines, open for appending.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    file: File,
}

impl Record {
    /// Opens a file; it is created if it does not exist.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(Error::system(path.display().to_string()))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Appends one result, a JSON object, with the machine and this program's arguments.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn append(&mut self, mut result: Value) -> Result<(), Error> {
        result["machine"] = machine().into();
        let arguments = std::env::args_os().skip(1);
        result["arguments"] =
            arguments.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().into();
        // One write, so that lines of several programs do not mix.
        let line = format!("{result}\n");
        let failed = Error::system(self.path.display().to_string());
        self.file.write_all(line.as_bytes()).map_err(failed)
    }
}

/// Describes the machine: processor, load, pinning.
pub fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("");
    let model = model.trim_start_matches(['\t', ' ', ':']);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?");
    let pinned = if cpus::can_pin() { "servers pinned" } else { "not pinned" };
    format!("{model}, load {load}, {pinned}")
}
