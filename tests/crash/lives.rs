//! [`Lives`]: starts and ends of a drive on one medium, drawn from a seed.

use std::ops::Range;
use std::time::Duration;

use csd_initiator::Address;
use csd_reactor::sleep;
use rustix::process::Signal;

use crate::drive::{Drive, Start};
use crate::faults::{Request, Trip};
use crate::round::Totals;
use crate::{Numbers, harness};

/// Message of a start while the kernel still ends the requests of a killed process.
const LOCKED: &str = "in use by another process";
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// End of a life, which determines the data that the next one must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Power cut: flushed data is there.
    Cut,
    /// Killed, with the page cache intact: acknowledged data is there, unless a volatile cache may
    /// forget it.
    Killed,
    /// Stopped in order: acknowledged data is there and durable.
    Stopped,
}

/// The end that a life will have.
pub(crate) struct Death {
    pub(crate) end: End,
    tripped: u64,
}

impl Death {
    /// Returns the function that ends the process, unless a request has done so before.
    pub(crate) fn blow(&self, pid: u32) -> impl FnOnce() + use<> {
        let word = if self.end == End::Stopped { Signal::TERM } else { Signal::KILL };
        move || harness::signal(pid, word)
    }
}

/// A drive, its lives so far, and their counts.
pub(crate) struct Lives {
    pub(crate) drive: Drive,
    /// End of the last life; `None` before the first.
    pub(crate) last: Option<End>,
    /// True if each start draws whether the drive has a volatile cache.
    pub(crate) caches: bool,
    numbers: Numbers,
    totals: Totals,
}

impl Lives {
    pub(crate) fn new(drive: Drive, numbers: Numbers) -> Self {
        Self { drive, last: None, caches: false, numbers, totals: Totals::new() }
    }

    pub(crate) fn draw(&mut self, range: Range<u64>) -> u64 {
        range.start + self.numbers.next().expect("endless") % (range.end - range.start)
    }

    pub(crate) fn count(&mut self, what: &'static str, more: u64) {
        *self.totals.entry(what).or_default() += more;
    }

    /// Returns all counts.
    pub(crate) fn totals(mut self) -> Totals {
        let counts = self.drive.medium.counts();
        self.count("cuts in the middle of a request", counts.tripped);
        self.count("cuts that tore", counts.landed.torn_cuts);
        self.count("sectors lost", counts.landed.lost);
        self.count("sectors landed early", counts.landed.early);
        self.count("segments cleaned", counts.landed.segments_freed);
        self.totals
    }

    /// Starts the drive, perhaps with cuts while it recovers.
    pub(crate) async fn start(&mut self) -> Result<Address, String> {
        loop {
            if self.caches {
                self.drive.volatile_cache = self.draw(0..5) > 0;
            }
            let pid = self.drive.spawn();
            self.count("starts", 1);
            let tripped = self.drive.medium.counts().tripped;
            if self.last.is_some() && self.draw(0..3) == 0 {
                let after = self.draw(1..200);
                self.drive.medium.set_trip(Some(Trip { pid, after, at: Request::Read }));
            }
            let started = self.drive.started().await;
            self.drive.medium.set_trip(None);
            let cut = self.drive.medium.counts().tripped > tripped;
            match started {
                Start::Serves(address) if !cut => return Ok(address),
                Start::Serves(_) => self.drive.kill()?,
                Start::Ended(_) if cut => {}
                Start::Ended(done) if self.last == Some(End::Killed) && is_locked(&done.stderr) => {
                    sleep(LOOK_EVERY).await;
                    continue;
                }
                Start::Ended(done) => return Err(format!("it did not start: {}", done.stderr)),
            }
            self.count("cuts in recovery", 1);
            self.cut();
        }
    }

    /// Draws the end of a life, which may come in a later request of the process.
    pub(crate) fn next_death(&mut self) -> Death {
        let end = match self.draw(0..10) {
            0 => End::Killed,
            1 | 2 => End::Stopped,
            _ => End::Cut,
        };
        let (in_request, after) = (self.draw(0..3) > 0, self.draw(1..400));
        // At a sync whole groups are written and not durable.
        let at = if self.draw(0..3) == 0 { Request::Write } else { Request::Sync };
        let pid = self.drive.pid();
        if end == End::Cut && in_request {
            self.drive.medium.set_trip(Some(Trip { pid, after, at }));
        }
        Death { end, tripped: self.drive.medium.counts().tripped }
    }

    /// Ends a life whose host has nothing more to ask, and cuts the power if that is its end.
    /// `is_struck` says that the blow was called; `refused` is an error with which the drive has
    /// answered.
    pub(crate) fn die(
        &mut self,
        death: &Death,
        is_struck: bool,
        refused: Option<&str>,
    ) -> Result<(), String> {
        self.drive.medium.set_trip(None);
        let cut = self.drive.medium.counts().tripped > death.tripped;
        match death.end {
            _ if !is_struck && !cut => {
                let found = self.drive.kill();
                return Err(format!("the host was cut off: {refused:?}, {found:?}"));
            }
            End::Stopped => {
                self.drive.stopped()?;
                self.count("clean stops", 1);
            }
            _ => self.drive.kill()?,
        }
        // A drive that stops refuses new commands.
        if death.end != End::Stopped
            && let Some(text) = refused
        {
            return Err(format!("a command was refused: {text}"));
        }
        self.last = Some(death.end);
        self.count("kills without a cut", u64::from(death.end == End::Killed));
        // The power may also go after a stop.
        if death.end == End::Cut || (death.end == End::Stopped && self.draw(0..2) == 0) {
            self.cut();
        }
        Ok(())
    }

    /// Cuts the power.
    fn cut(&mut self) {
        self.count("cuts", 1);
        self.drive.medium.cut_at_random();
        // Data of a drive that stopped in order is durable.
        if self.last != Some(End::Stopped) {
            self.last = Some(End::Cut);
        }
    }
}

fn is_locked(stderr: &str) -> bool {
    stderr.contains(LOCKED)
}
