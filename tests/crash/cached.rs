//! Rounds of a drive with a volatile cache (`--volatile-cache`) and without one in turns: after a
//! cut or a kill hosts find no change without those that were answered before it was sent, and
//! everything that was flushed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use csd_initiator::{Controller, Kv, Options};

use crate::Numbers;
use crate::drive::Drive;
use crate::faults::Faults;
use crate::lives::{End, Lives};
use crate::round::Totals;
use crate::writer::{Changes, Load, compare, write_until_lost};

/// Lives with work in them; after the last the drive starts once more.
const LIVES: usize = 3;
/// Answers in a life, at most.
const ANSWERS: u64 = 1500;

/// Round in progress.
struct Cached {
    lives: Lives,
    changes: Changes,
}

impl Cached {
    /// Makes a new medium, and a drive with options drawn from `numbers`.
    fn new(mut numbers: Numbers) -> Self {
        let mut draw = |below: u64| numbers.next().expect("endless") % below;
        let backend = ["uring", "epoll"][usize::from(draw(2) == 0)];
        let cores = ["1", "2"][usize::from(draw(2) == 0)];
        let sync_delay_us = [0, 500, 3000][usize::try_from(draw(3)).expect("small")];
        let options = ["--backend", backend, "--cores", cores, "--kv", "60%"];
        let more = ["--log-level", "warn"];
        let drive = Drive::new(&[&options[..], &more[..]].concat(), &mut numbers);
        drive.medium.set_faults(Faults { sync_delay_us, ..Faults::default() });
        let mut lives = Lives::new(drive, numbers);
        lives.caches = true;
        Self { lives, changes: Rc::default() }
    }

    async fn run(mut self) -> (Result<(), String>, Totals) {
        let result = self.live().await;
        let (kept, lost) = (self.changes.borrow().kept, self.changes.borrow().lost);
        self.lives.count("changes kept", kept);
        self.lives.count("changes lost with an end", lost);
        (result, self.lives.totals())
    }

    async fn live(&mut self) -> Result<(), String> {
        for _ in 0..LIVES {
            let address = self.lives.start().await?;
            self.compare(&address).await?;
            let is_cached = self.lives.drive.volatile_cache;
            self.lives.count("lives with a volatile cache", u64::from(is_cached));
            let is_heavy = self.lives.draw(0..4) == 0;
            let flushes = [8, 40, 1_000][usize::try_from(self.lives.draw(0..3)).expect("small")];
            self.work(address, Load { is_cached, is_heavy, flushes }).await?;
        }
        let address = self.lives.start().await?;
        self.compare(&address).await?;
        self.lives.drive.stop()?;
        self.lives.drive.check()
    }

    /// Reads everything back.
    async fn compare(&self, address: &csd_initiator::Address) -> Result<(), String> {
        let controller = Controller::connect(address, &Options::default()).await;
        let controller = controller.map_err(|error| format!("a host cannot connect: {error}"))?;
        let kv = Kv::open(&controller, 2).map_err(|error| error.to_string())?;
        compare(&kv, &self.changes).await
    }

    /// Writes until the drive's life ends, at a number of answers or requests.
    async fn work(&mut self, address: csd_initiator::Address, load: Load) -> Result<(), String> {
        let death = self.lives.next_death();
        let left = Rc::new(Cell::new(self.lives.draw(20..ANSWERS)));
        let blow = Rc::new(RefCell::new(Some(death.blow(self.lives.drive.pid()))));
        let strike = Rc::clone(&blow);
        let answered = move || {
            left.set(left.get().saturating_sub(1));
            if left.get() == 0
                && let Some(blow) = strike.borrow_mut().take()
            {
                blow();
            }
        };
        let refused = write_until_lost(address, load, Rc::clone(&self.changes), answered).await;
        let refused = refused.map(|error| error.to_string());
        self.lives.die(&death, blow.borrow().is_none(), refused.as_deref())?;
        if death.end == End::Stopped {
            let mut changes = self.changes.borrow_mut();
            let now = changes.now();
            changes.flushed(now);
        }
        Ok(())
    }
}

#[test]
fn a_volatile_cache_loses_an_end_of_what_was_answered_and_nothing_that_was_flushed() {
    crate::run_rounds("volatile cache", |numbers| Cached::new(numbers).run());
}
