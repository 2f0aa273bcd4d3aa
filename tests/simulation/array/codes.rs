//! Codes that survive the loss of most drives: of six drives, two suffice to find and read an
//! object of rs:2+4, while the other four are down or have forgotten something.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use csd_reactor::now;
use csd_store::array::{Array, GUARDED, Guards, Plan};
use csd_store::catalogue::key;
use csd_store::error::NameError;
use csd_store::object::{self, Error};

use super::history::Ask;
use super::host::{self, Known, name_of};
use super::{DRIVES, Faults, HOSTS, Lane, NAMES, plan, rot};
use crate::seeds;

/// Losses that an object of rs:2+4 survives.
const LOSSES: usize = 4;

impl Lane {
    /// Draws this many drives, those that have forgotten something among them.
    pub(super) fn draw_lost(&self, count: usize) -> Vec<usize> {
        let mut lost: Vec<usize> = {
            let known = self.known.borrow();
            (0..DRIVES).filter(|drive| known.media[*drive] != known.voting[*drive]).collect()
        };
        while lost.len() < count {
            let drive = self.draw_drive();
            if !lost.contains(&drive) {
                lost.push(drive);
            }
        }
        lost
    }

    /// Leaves two drives to a host for a while.
    pub(super) fn leave_two(&mut self) {
        let host = usize::try_from(self.draw(0..HOSTS as u64)).unwrap();
        let lost = self.draw_lost(LOSSES);
        self.part(host, &lost);
        self.world.run_for(Duration::from_millis(self.draw(1..4000)));
        self.join(host, &lost);
    }

    pub(super) fn part(&self, host: usize, drives: &[usize]) {
        let ends = drives.iter().map(|drive| self.drives[*drive].machine);
        ends.for_each(|end| self.world.partition(self.hosts[host], end));
    }

    pub(super) fn join(&self, host: usize, drives: &[usize]) {
        let ends = drives.iter().map(|drive| self.drives[*drive].machine);
        ends.for_each(|end| self.world.heal(self.hosts[host], end));
    }

    /// Reads every name over two drives, several times, after the hosts have ended.
    pub(super) fn read_with_two(&self) {
        if !self.known.borrow().codes {
            return;
        }
        for _ in 0..4 {
            let lost = self.draw_lost(LOSSES);
            self.part(0, &lost);
            let (known, guards) = (Rc::clone(&self.known), self.guards);
            let reading = move |_| read_names(plan(), guards, Rc::clone(&known));
            self.world.start(self.hosts[0], reading);
            self.wait("the reader", || !self.world.is_running(self.hosts[0]));
            self.join(0, &lost);
            let (strong, known) = (Rc::default(), Rc::clone(&self.known));
            let noted: Rc<Cell<Vec<usize>>> = Rc::clone(&strong);
            self.world.start(self.hosts[0], move |_| {
                let (noted, known) = (Rc::clone(&noted), Rc::clone(&known));
                async move { noted.set(strong_names(plan(), GUARDED, &known).await) }
            });
            self.wait("a look at all drives", || !self.world.is_running(self.hosts[0]));
            let media = self.media_at_rest();
            let mut known = self.known.borrow_mut();
            let unseen = std::mem::take(&mut known.unfound);
            // A damaged copy on one of the two drives is a loss more than the name bears.
            let is_borne = |name: &usize| {
                let (key, mut left) = (key(&name_of(*name)), 0..DRIVES);
                left.all(|drive| {
                    lost.contains(&drive) || rot::is_sound_or_none(&media[drive], &key)
                })
            };
            let wrong = |name: &usize| unseen.contains(name) && is_borne(name);
            for name in strong.take().into_iter().filter(wrong) {
                let text = format!("{}: not found without drives {lost:?}", name_of(name));
                known.history.violations.push(text);
            }
        }
    }
}

/// Looks up and reads every name, and notes those that too few drives know.
async fn read_names(plan: Plan, guards: Guards, known: Known) {
    let array = Array::connect_with(&plan, &host::options(), guards).await;
    for name in 0..NAMES {
        match object::lookup(&array, &name_of(name)).await {
            Ok(_) | Err(Error::Name(NameError::Missing { .. })) => {
                known.borrow_mut().found_by_two += 1
            }
            Err(_) => known.borrow_mut().unfound.push(name),
        }
        let operation = known.borrow_mut().history.begin(0, name, Ask::Get, now().ns());
        let told = host::get(&array, name, &known).await;
        known.borrow_mut().history.end(operation, now().ns(), told);
    }
}

/// Returns the names that survive the loss of four drives, of those whose last change was
/// acknowledged.
async fn strong_names(plan: Plan, guards: Guards, known: &Known) -> Vec<usize> {
    let array = Array::connect_with(&plan, &host::options(), guards).await;
    let mut strong = Vec::new();
    for name in 0..NAMES {
        let entry = object::lookup(&array, &name_of(name)).await;
        let is_strong = entry.is_ok_and(|entry| entry.losses() == LOSSES);
        if is_strong && known.borrow().history.is_settled(name) {
            strong.push(name);
        }
    }
    strong
}

#[test]
fn two_of_six_drives_suffice_for_what_survives_four_losses() {
    let (mut found, mut faults) = (0, Faults::default());
    let runs = seeds::each(seeds(), |seed| {
        let lane = Lane::new(seed, GUARDED);
        let known = Rc::clone(&lane.known);
        known.borrow_mut().codes = true;
        let outcome = lane.run().checked();
        (known.borrow().found_by_two, outcome.faults)
    });
    for (of_run, of_faults) in runs {
        found += of_run;
        faults.add(of_faults);
    }
    let count = seeds().count() as u64;
    println!("array, two drives left: {count} seeds, {found} names found by two, {faults:?}");
    assert!(count < 50 || found > count, "{found} names were found by two drives");
}
