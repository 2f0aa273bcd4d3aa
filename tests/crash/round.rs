//! A round: a drive lives at least three times on one medium, and each life ends differently.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use csd_initiator::{Controller, Options};

use crate::Numbers;
use crate::drive::Drive;
use crate::faults::Faults;
use crate::lives::{End, Lives};
use crate::workload::{Known, Load, Shared, read_back, work_until_lost};

/// Lives with work in them; after the last the drive starts once more.
const LIVES: u64 = 2;

/// Results of rounds, by name.
pub(crate) type Totals = BTreeMap<&'static str, u64>;

/// Round in progress.
pub(crate) struct Round {
    lives: Lives,
    known: Shared,
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
        // Values share chunks, which is a service of the drive next to its others.
        let policy =
            ["inline", "local", "bts", "adaptive"][usize::try_from(draw(4)).expect("small")];
        let shares = ["--dedup", "4K", "--dedup-share", "--policy", policy];
        let alike = draw(3) == 0;
        let shares = if alike { &shares[..] } else { &[] };
        let scrub = ["1M", "1G"][usize::from(draw(2) == 0)];
        let options = ["--backend", backend, "--cores", cores, "--block", block];
        let more = ["--direct", direct, "--kv", "50%", "--log-level", "warn", "--scrub", scrub];
        let cached = draw(3) == 0;
        let mut drive = Drive::new(&[&options[..], &more[..], shares].concat(), &mut numbers);
        drive.volatile_cache = cached;
        drive.medium.set_faults(Faults { sync_delay_us, ..Faults::default() });
        let known = Rc::new(RefCell::new(Known { heavy, cached, alike, ..Known::default() }));
        let mut lives = Lives::new(drive, numbers);
        lives.count("rounds with a volatile cache", u64::from(cached));
        lives.count("rounds with shared chunks", u64::from(alike));
        Self { lives, known, load, operations }
    }

    /// Lives, dies and recovers; returns the first violation, and the counts.
    pub(crate) async fn run(mut self) -> (Result<(), String>, Totals) {
        let result = self.live().await;
        let operations = self.known.borrow().operations;
        self.lives.count("operations", operations);
        (result, self.lives.totals())
    }

    async fn live(&mut self) -> Result<(), String> {
        for _ in 0..LIVES + self.lives.draw(0..2) {
            let controller = self.start().await?;
            self.work(&controller).await?;
        }
        drop(self.start().await?);
        self.lives.drive.stop()?;
        self.lives.drive.check()
    }

    /// Starts the drive, perhaps with cuts while it recovers, and reads everything back.
    async fn start(&mut self) -> Result<Controller, String> {
        let address = self.lives.start().await?;
        let options = Options::default();
        let controller = Controller::connect(&address, &options).await;
        let controller = controller.map_err(|error| format!("a host cannot connect: {error}"))?;
        let kept = match self.lives.last {
            Some(End::Stopped) => true,
            // A volatile cache may forget the same as in a cut.
            Some(End::Killed) => !self.known.borrow().cached,
            Some(End::Cut) | None => false,
        };
        read_whole(&controller, &self.known, kept).await?;
        Ok(controller)
    }

    /// Works until the drive's life ends, at a number of operations or requests.
    async fn work(&mut self, controller: &Controller) -> Result<(), String> {
        let death = self.lives.next_death();
        let operations = self.lives.draw(self.operations.clone());
        {
            let mut known = self.known.borrow_mut();
            let syncing_max = known.syncing + operations;
            known.load = Load { syncing_max, ..self.load };
            known.when_done = Some(Box::new(death.blow(self.lives.drive.pid())));
        }
        work_until_lost(controller, &self.known).await;
        let is_struck = self.known.borrow_mut().when_done.take().is_none();
        let refused = self.known.borrow_mut().refused.take();
        verdict(&self.known)?;
        self.lives.die(&death, is_struck, refused.as_deref())
    }
}

/// Reads everything back, and compares it with what may be there.
pub(crate) async fn read_whole(
    controller: &Controller,
    known: &Shared,
    kept: bool,
) -> Result<(), String> {
    let read = read_back(controller, known, kept).await;
    read.map_err(|()| "the connection was lost while everything was read".to_owned())?;
    verdict(known)
}

/// Returns the first thing that was wrong.
pub(crate) fn verdict(known: &Shared) -> Result<(), String> {
    known.borrow().failure.clone().map_or(Ok(()), Err)
}
