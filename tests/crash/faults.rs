//! Faults of the medium: at rates, at a single request, and kills in a request.

/// Reason why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The disk failed, or the power was cut after the descriptor was opened.
    Io,
    /// The disk is full.
    NoSpace,
}

/// Rates of faults, each one time in so many; 0 means never.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// A write ends in EIO, after a part of it.
    pub(crate) write_error_in: u64,
    /// The next write that begins with these bytes ends in EIO, but its data is there.
    pub(crate) lands_and_fails: Option<&'static [u8]>,
    /// A write ends in ENOSPC.
    pub(crate) no_space_in: u64,
    /// A sync drops its data, and ends in EIO.
    pub(crate) sync_error_in: u64,
    /// Longest delay of a sync, microseconds.
    pub(crate) sync_delay_us: u64,
}

/// Makes a single request fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Once {
    /// Kind of the requests that are counted.
    pub(crate) at: Request,
    /// Number of requests until then.
    pub(crate) after: u64,
    pub(crate) how: How,
}

/// Way in which a single request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// EIO; of a write nothing is there, what a sync covers is lost.
    Error,
    /// EIO; the write is there.
    WrittenError,
    /// ENOSPC.
    NoSpace,
    /// A write of which a part is done and counted, as the interface allows.
    Short,
}

/// Kills a process in the middle of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trip {
    pub(crate) pid: u32,
    /// Number of requests until then.
    pub(crate) after: u64,
    /// Kind of requests to count and kill in; `Read` means requests of all kinds.
    pub(crate) at: Request,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Read,
    Write,
    Sync,
}
