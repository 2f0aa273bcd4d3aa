//! Keeps the processes of an operating system running: those of its tunnel and of its log.

use std::path::Path;

use crate::Error;
use crate::os_folder::OsFolder;
use crate::process::{Process, serve};
use crate::record::Record;

/// Starts a program, unless it runs with these words.
pub(crate) fn keep(
    os_folder: &OsFolder,
    record: &mut Record,
    program: &str,
    arguments: &[String],
    log: &Path,
) -> Result<(), Error> {
    if let Some(at) = record.processes.iter().position(|one| one.program == program) {
        if record.processes[at].has_words(arguments) {
            return Ok(());
        }
        record.processes[at].end()?;
        record.processes.remove(at);
        record.save(os_folder)?;
    }
    serve(program, arguments, log, |process: Process| record.add(os_folder, process)).map(drop)
}
