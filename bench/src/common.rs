//! Options of every program here that measures a drive.

use std::path::PathBuf;

use clap::Args;
use csd_bench::Error;
use csd_bench::record::Record;
use csd_bench::serve::{self, Launch, Options, Side};

/// Words that make the program serve.
pub(crate) const LAUNCH: Launch = Launch(&["--serve"]);

/// Options of every benchmark of a drive.
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// The drive.
    #[command(flatten)]
    pub drive: Options,
    /// Also append the results to this JSON-lines file.
    #[arg(long)]
    pub record: Option<PathBuf>,
    /// Serve one side and nothing else (used by the benchmark itself).
    #[arg(long, hide = true)]
    pub serve: Option<Side>,
}

impl Common {
    /// Serves if this process is a server; returns false if it measures.
    pub(crate) fn served(&self) -> Result<bool, Error> {
        let Some(side) = self.serve else { return Ok(false) };
        serve::serve(side, &self.drive)?;
        Ok(true)
    }

    /// Opens the record that the options name.
    pub(crate) fn record(&self) -> Result<Option<Record>, Error> {
        self.record.as_deref().map(Record::open).transpose()
    }
}
