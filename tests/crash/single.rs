//! A single request to the file system fails: a write with EIO (with nothing of it there, or all of
//! it), ENOSPC or a part of it done, a sync, a read. Hosts go on; then the drive is stopped or
//! killed. It starts again, has everything acknowledged, and the check finds nothing.

use std::cell::RefCell;
use std::rc::Rc;

use csd_initiator::{Address, Controller, Options};
use rustix::process::Signal;

use crate::Numbers;
use crate::drive::{Drive, Start};
use crate::faults::{How, Once, Request};
use crate::harness::signal;
use crate::round::{Totals, read_whole, verdict};
use crate::workload::{Known, Load, Shared, work_until_lost};

/// Faults, with their names in the counts.
const FAULTS: [(Request, How, &str); 6] = [
    (Request::Write, How::Error, "writes with EIO"),
    (Request::Write, How::WrittenError, "writes with EIO that landed"),
    (Request::Write, How::NoSpace, "writes with ENOSPC"),
    (Request::Write, How::Short, "short writes"),
    (Request::Sync, How::Error, "syncs with EIO"),
    (Request::Read, How::Error, "reads with EIO"),
];

/// Round in progress.
struct Single {
    drive: Drive,
    known: Shared,
    numbers: Numbers,
    totals: Totals,
    is_ring: bool,
}

impl Single {
    fn new(mut numbers: Numbers) -> Self {
        let mut draw = |below: u64| numbers.next().expect("endless") % below;
        let backend = ["uring", "auto"][usize::from(draw(2) == 0)];
        let cores = ["1", "2"][usize::from(draw(2) == 0)];
        let direct = ["on", "off"][usize::from(draw(2) == 0)];
        let load = match draw(2) {
            0 => Load { workers: 30, shards: 2, small: true, ..Load::default() },
            _ => Load { workers: 8, ..Load::default() },
        };
        let heavy = draw(2) == 0;
        let options = ["--backend", backend, "--cores", cores, "--direct", direct];
        let more = ["--kv", "50%", "--log-level", "warn"];
        let drive = Drive::new(&[&options[..], &more[..]].concat(), &mut numbers);
        let known = Known { load, heavy, goes_on: true, ..Known::default() };
        let totals = FAULTS.iter().map(|(_, _, name)| (*name, 0)).collect();
        let (known, is_ring) = (Rc::new(RefCell::new(known)), backend == "uring");
        Self { drive, known, numbers, totals, is_ring }
    }

    async fn run(mut self) -> (Result<(), String>, Totals) {
        let result = self.live().await;
        let operations = self.known.borrow().operations;
        self.count("operations", operations);
        (result, self.totals)
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.numbers.next().expect("endless") % below
    }

    fn count(&mut self, what: &'static str, more: u64) {
        *self.totals.entry(what).or_default() += more;
    }

    /// Lives twice with work in which a request fails, and once more.
    async fn live(&mut self) -> Result<(), String> {
        for _ in 0..2 {
            let controller = self.start().await?;
            self.work(&controller).await?;
        }
        drop(self.start().await?);
        self.drive.stop()?;
        self.drive.check()
    }

    async fn start(&mut self) -> Result<Controller, String> {
        let address = self.drive.serve().await?;
        let controller = connect(&address).await?;
        read_whole(&controller, &self.known, false).await?;
        Ok(controller)
    }

    /// Works while a request fails, and ends the drive.
    async fn work(&mut self, controller: &Controller) -> Result<(), String> {
        let index = usize::try_from(self.draw(FAULTS.len() as u64)).expect("few");
        // The kernel resumes a short write of a ring by itself, and on FUSE at its beginning: the
        // rest lands in the wrong place (seen with Linux 6.18). Drives meet short writes by the
        // back end that they choose by themselves.
        let is_kernels = self.is_ring && FAULTS[index].1 == How::Short;
        let (at, how, name) = FAULTS[if is_kernels { 0 } else { index }];
        let (after, operations) = (1 + self.draw(100), 50 + self.draw(250));
        let is_stop = self.draw(2) == 0;
        // Also one of the writes with which a drive stops.
        let in_stop = is_stop && self.draw(4) == 0;
        let (pid, medium) = (self.drive.pid(), std::sync::Arc::clone(&self.drive.medium));
        let once = Once { at, after: if in_stop { 1 + after % 30 } else { after }, how };
        let word = if is_stop { Signal::TERM } else { Signal::KILL };
        if !in_stop {
            self.drive.medium.set_once(Some(once));
        }
        {
            let mut known = self.known.borrow_mut();
            known.is_lost = false;
            known.load.syncing_max = known.syncing + operations;
            known.when_done = Some(Box::new(move || {
                if in_stop {
                    medium.set_once(Some(once));
                }
                signal(pid, word);
            }));
        }
        let before = self.drive.medium.counts().errors;
        work_until_lost(controller, &self.known).await;
        verdict(&self.known)?;
        match self.drive.started().await {
            // It was ready long ago, and is about to end.
            Start::Serves(_) if is_stop => self.stopped(before)?,
            Start::Serves(_) => self.drive.kill()?,
            Start::Ended(done) if is_stop && (done.code == 0 || self.has_struck(before)) => {}
            Start::Ended(done) if !is_stop && done.code == -1 => {}
            Start::Ended(done) => return Err(format!("it ended by itself: {}", done.stderr)),
        }
        let is_struck = self.has_struck(before);
        self.drive.medium.set_once(None);
        self.count(name, u64::from(is_struck));
        self.count("clean stops", u64::from(is_stop));
        self.count("kills", u64::from(!is_stop));
        Ok(())
    }

    fn has_struck(&self, before: u64) -> bool {
        self.drive.medium.counts().errors > before
    }

    /// Waits for the end of a drive that was asked to stop. Its last writes may be what fails.
    fn stopped(&mut self, before: u64) -> Result<(), String> {
        match self.drive.stopped() {
            Err(_) if self.has_struck(before) => Ok(()),
            ended => ended,
        }
    }
}

async fn connect(address: &Address) -> Result<Controller, String> {
    let controller = Controller::connect(address, &Options::default()).await;
    controller.map_err(|error| format!("a host cannot connect: {error}"))
}

#[test]
fn a_single_failed_request_loses_nothing_and_the_drive_starts_again() {
    crate::run_rounds("single faults", |numbers| Single::new(numbers).run());
}
