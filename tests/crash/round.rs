//! A round: a drive lives at least three times on one medium, and each life ends differently.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use csd_initiator::{Controller, Options};
use csd_reactor::sleep;
use rustix::process::Signal;

use crate::Numbers;
use crate::drive::{Drive, Start};
use crate::harness::signal;
use crate::medium::{Faults, Request, Trip};
use crate::workload::{Known, Load, Shared, read_back, work_until_lost};

/// Lives with work in them; after the last the drive starts once more.
const LIVES: u64 = 2;
/// Message of a start while the kernel still ends the requests of a killed process.
const LOCKED: &str = "in use by another process";

/// Results of rounds, by name.
pub(crate) type Totals = BTreeMap<&'static str, u64>;

/// End of a life, which determines the data that the next one must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Power cut: flushed data is there.
    Cut,
    /// Killed, with the page cache intact: acknowledged data is there.
    Killed,
    /// Stopped in order: acknowledged data is there and durable.
    Stopped,
}

/// Round in progress.
pub(crate) struct Round {
    numbers: Numbers,
    drive: Drive,
    known: Shared,
    totals: Totals,
    /// End of the last life; `None` before the first.
    last: Option<End>,
    load: Load,
    operations: Range<u64>,
}

impl Round {
    /// Makes a new medium, and a drive with options drawn from `numbers`.
    pub(crate) fn new(mut numbers: Numbers) -> Self {
        let mut draw = |below: u64| numbers.next().expect("endless") % below;
        let backend = ["uring", "epoll"][usize::from(draw(2) == 0)];
        let cores = ["1", "2"][usize::from(draw(2) == 0)];
        let block = ["512", "4096"][usize::from(draw(2) == 0)];
        // Direct transfers of this file system have 4,096 bytes: too long for blocks of 512.
        let direct = match draw(3) {
            0 => "off",
            _ if block == "512" => "auto",
            _ => "on",
        };
        let sync_delay_us = [0, 500, 3000][usize::try_from(draw(3)).expect("small")];
        let mixed = Load { workers: 12, ..Load::default() };
        let (load, heavy, operations) = match draw(4) {
            // Many records of one shard come together in groups.
            0 | 1 => (Load { workers: 40, shards: 2, small: true, ..mixed }, false, 50..1500),
            2 => (mixed, false, 20..600),
            // The log must be cleaned.
            _ => (Load { workers: 8, ..mixed }, true, 100..500),
        };
        let options = ["--backend", backend, "--cores", cores, "--block", block];
        let more = ["--direct", direct, "--kv", "50%", "--log-level", "warn"];
        let drive = Drive::new(&[&options[..], &more[..]].concat(), &mut numbers);
        drive.medium.set_faults(Faults { sync_delay_us, ..Faults::default() });
        let known = Rc::new(RefCell::new(Known { heavy, ..Known::default() }));
        let totals = Totals::new();
        Self { numbers, drive, known, totals, last: None, load, operations }
    }

    fn draw(&mut self, range: Range<u64>) -> u64 {
        range.start + self.numbers.next().expect("endless") % (range.end - range.start)
    }

    fn count(&mut self, what: &'static str, more: u64) {
        *self.totals.entry(what).or_default() += more;
    }

    /// Lives, dies and recovers; returns the first violation, and the counts.
    pub(crate) async fn run(mut self) -> (Result<(), String>, Totals) {
        let result = self.live().await;
        let counts = self.drive.medium.counts();
        let operations = self.known.borrow().operations;
        self.count("operations", operations);
        self.count("cuts in the middle of a request", counts.tripped);
        self.count("cuts that tore", counts.landed.torn_cuts);
        self.count("sectors lost", counts.landed.lost);
        self.count("sectors landed early", counts.landed.early);
        self.count("segments cleaned", counts.landed.segments_freed);
        (result, self.totals)
    }

    async fn live(&mut self) -> Result<(), String> {
        for _ in 0..LIVES + self.draw(0..2) {
            let controller = self.start().await?;
            self.work(&controller).await?;
        }
        drop(self.start().await?);
        self.drive.stop()?;
        self.drive.check()
    }

    /// Starts the drive, perhaps with cuts while it recovers, and reads everything back.
    async fn start(&mut self) -> Result<Controller, String> {
        let address = loop {
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
                Start::Serves(address) if !cut => break address,
                Start::Serves(_) => self.drive.kill()?,
                Start::Ended(_) if cut => {}
                Start::Ended(done) if self.last == Some(End::Killed) && is_locked(&done.stderr) => {
                    sleep(std::time::Duration::from_millis(20)).await;
                    continue;
                }
                Start::Ended(done) => return Err(format!("it did not start: {}", done.stderr)),
            }
            self.count("cuts in recovery", 1);
            self.cut();
        };
        let options = Options::default();
        let controller = Controller::connect(&address, &options).await;
        let controller = controller.map_err(|error| format!("a host cannot connect: {error}"))?;
        let kept = matches!(self.last, Some(End::Killed | End::Stopped));
        let read = read_back(&controller, &self.known, kept).await;
        read.map_err(|()| "the connection was lost while everything was read".to_owned())?;
        self.verdict()?;
        Ok(controller)
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

    fn verdict(&self) -> Result<(), String> {
        self.known.borrow().failure.clone().map_or(Ok(()), Err)
    }

    /// Works until the drive's life ends, at a number of operations or requests.
    async fn work(&mut self, controller: &Controller) -> Result<(), String> {
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
        let operations = self.draw(self.operations.clone());
        {
            let mut known = self.known.borrow_mut();
            let syncing_max = known.syncing + operations;
            known.load = Load { syncing_max, ..self.load };
            let word = if end == End::Stopped { Signal::TERM } else { Signal::KILL };
            known.when_done = Some(Box::new(move || signal(pid, word)));
        }
        let tripped = self.drive.medium.counts().tripped;
        work_until_lost(controller, &self.known).await;
        self.drive.medium.set_trip(None);
        let cut = self.drive.medium.counts().tripped > tripped;
        let by_itself = self.known.borrow_mut().when_done.take().is_some() && !cut;
        let refused = self.known.borrow_mut().refused.take();
        match end {
            _ if by_itself => {
                let found = self.drive.kill();
                return Err(format!("the host was cut off: {refused:?}, {found:?}"));
            }
            End::Stopped => {
                self.drive.stopped()?;
                self.count("clean stops", 1);
            }
            _ => self.drive.kill()?,
        }
        self.verdict()?;
        // A drive that stops refuses new commands.
        if end != End::Stopped
            && let Some(text) = refused
        {
            return Err(format!("a command was refused: {text}"));
        }
        self.last = Some(end);
        self.count("kills without a cut", u64::from(end == End::Killed));
        // The power may also go after a stop.
        if end == End::Cut || (end == End::Stopped && self.draw(0..2) == 0) {
            self.cut();
        }
        Ok(())
    }
}

fn is_locked(stderr: &str) -> bool {
    stderr.contains(LOCKED)
}
