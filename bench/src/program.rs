//! Programs of `src/bin` that measure a drive: their common options, and how they serve.

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
