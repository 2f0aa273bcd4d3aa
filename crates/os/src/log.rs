//! The log of an operating system's first process, and of what it starts.
//!
//! It goes through a pipe to a process of this machine, which bounds its size. So no program inside
//! has the file: it can add lines, and neither change those that are there nor fill a disk. The
//! pipe has a name, so that another process can go on with it.

use std::fs::File;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::Errno;

use crate::Error;
use crate::keep::keep;
use crate::os_folder::OsFolder;
use crate::record::{LOG_KEEPER, Record};

/// Makes the pipe, and starts the process that keeps the log, unless they are there.
pub(crate) fn keep_log(
    os_folder: &OsFolder,
    record: &mut Record,
    keeper: &[String],
) -> Result<(), Error> {
    let pipe = os_folder.log_pipe();
    match mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(Error::os(pipe.display(), std::io::Error::from(error))),
    }
    keep(os_folder, record, LOG_KEEPER, keeper, &os_folder.keeper_log())
}

/// Opens the end of the pipe into which programs write; the log is kept.
pub(crate) fn writer(os_folder: &OsFolder) -> Result<File, Error> {
    let pipe = os_folder.log_pipe();
    let opened = File::options().write(true).open(&pipe);
    opened.map_err(|error| Error::os(pipe.display(), error))
}
