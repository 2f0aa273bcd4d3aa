//! Programs of `src/bin` that measure a drive: their common options, and how they serve.

use std::path::Path;

use clap::Args;

use crate::Error;
use crate::record::Destination;
use crate::serve::{self, Launch, Options, Server, Side};

/// Words that make the program serve.
const LAUNCH: Launch = Launch(&["--serve"]);

/// Options of every benchmark of a drive.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// The drive.
    #[command(flatten)]
    pub drive: Options,
    /// The record of results.
    #[command(flatten)]
    pub record: Destination,
    /// Serve one side and nothing else (used by the benchmark itself).
    #[arg(long, hide = true)]
    serve: Option<Side>,
}

impl Common {
    /// Serves if this process is a server; returns false if it measures.
    ///
    /// # Errors
    /// If the side cannot be served.
    pub fn served(&self) -> Result<bool, Error> {
        let Some(side) = self.serve else { return Ok(false) };
        serve::serve(side, &self.drive)?;
        Ok(true)
    }
}

/// Measures with a new folder for media, and removes it with all that is in it.
///
/// # Errors
/// If the folder exists or cannot be made; else those of `measure`.
pub fn in_new_folder<T>(
    folder: &Path,
    measure: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    if let Some(parent) = folder.parent() {
        std::fs::create_dir_all(parent).map_err(Error::at(parent))?;
    }
    std::fs::create_dir(folder).map_err(Error::at(folder))?;
    let measured = measure();
    let removed = std::fs::remove_dir_all(folder).map_err(Error::at(folder));
    // The first error is the one that matters.
    let measured = measured?;
    removed.map(|()| measured)
}

/// Starts a drive, as a process of this program, and waits until it listens.
///
/// # Errors
/// If it does not start.
pub fn drive(options: &Options) -> Result<Server, Error> {
    start(Side::Drive, options)
}

/// Starts a server of either side, likewise.
///
/// # Errors
/// If it does not start.
pub fn start(side: Side, options: &Options) -> Result<Server, Error> {
    Server::start(LAUNCH, side, options)
}
