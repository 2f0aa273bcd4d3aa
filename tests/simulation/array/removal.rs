//! A drive is removed, up or down, by a host that may be interrupted; then hosts with the smaller
//! array reach a majority of it. Objects that cannot be moved stay as they are, as by `--lossy`.

use std::rc::Rc;
use std::time::Duration;

use csd_reactor::now;
use csd_store::array::{Array, DriveIndex, GUARDED, Plan};
use csd_store::catalogue::{grow, shrink};
use csd_store::error::NameError;
use csd_store::object::{self, Error};

use super::claims::{interrupted, with_object};
use super::damaged::{damage, is_sound};
use super::history::Ask;
use super::host::{self, Known, name_of};
use super::{DRIVES, FAULTS, Faults, HOSTS, Lane, NAMES, Outcome, file, rebalance};
use crate::seeds;

/// Drives of the smaller array that are out of reach at a time: a minority.
const OUT: usize = (DRIVES - 2) / 2;
/// Times that others are out of reach, and questions of each host meanwhile.
const ROUNDS: usize = 4;
const QUESTIONS: usize = 6;

/// Returns the plan of the array without a drive.
fn plan_without(place: usize) -> Plan {
    let mut file = file(DRIVES);
    file.remove(place);
    Plan::new(&file)
}

/// Moves what can be moved, and copies all names, as `csd array remove` does.
async fn leave(array: Array, index: DriveIndex) -> Result<usize, grow::Error> {
    let drives = array.without(index).voting();
    let sealed = object::list(&array).await?.sealed;
    object::rebalance(&array, &sealed, &drives, &rebalance::no_limits()).await;
    shrink::gather(&array, index).await
}

/// Looks up every name, which must succeed, and reads it; then asks for changes.
async fn use_smaller(host: usize, plan: Plan, known: Known) {
    let array = Array::connect_with(&plan, &host::options(), GUARDED).await;
    let array = array.with_patience(Duration::from_millis(300));
    for name in 0..NAMES {
        match object::lookup(&array, &name_of(name)).await {
            Ok(_) | Err(Error::Name(NameError::Missing { .. })) => {}
            Err(error) => {
                let text = format!("{} is not found: {error}", name_of(name));
                known.borrow_mut().history.violations.push(text);
            }
        }
        let operation = known.borrow_mut().history.begin(host, name, Ask::Get, now().ns());
        let told = host::get(&array, name, &known).await;
        known.borrow_mut().history.end(operation, now().ns(), told);
    }
    for _ in 0..QUESTIONS {
        host::operate(host, &array, &known).await;
    }
}

impl Lane {
    /// Removes a drive after faults, and lets hosts use the others. The outcome has the number of
    /// answers by the smaller array.
    fn remove_one(mut self) -> Outcome {
        self.start_drives();
        (0..HOSTS).for_each(|host| self.start_host(host));
        for _ in 0..FAULTS / 4 {
            self.world.run_for(Duration::from_millis(self.draw(1..700)));
            self.fault();
        }
        self.known.borrow_mut().stopping = true;
        self.wait("hosts", || self.hosts.iter().all(|host| !self.world.is_running(*host)));
        self.world.run_for(Duration::from_secs(15));
        self.read_back();
        let place = self.draw_drive();
        let is_down = self.draw(0..2) == 0;
        if is_down {
            self.world.crash(self.drives[place].machine);
        }
        if self.draw(0..2) == 0 {
            self.begin_to_leave(place);
        }
        self.ask(move |array| leave(array, DriveIndex::new(place))).expect("all others are up");
        if is_down {
            self.start_drive(place);
            self.world.run_for(Duration::from_secs(1));
        }
        // With the former array file, the drive is there, and has no vote.
        let votes = move |array: Array| async move {
            let slot = &array.slots()[place];
            (slot.drive().is_ok(), slot.vote().is_ok(), array.voters().len())
        };
        assert_eq!(self.ask(votes), (true, false, DRIVES - 1));
        self.world.crash(self.drives[place].machine);
        let before = self.known.borrow().history.answered();
        for _ in 0..ROUNDS {
            self.use_without(place);
        }
        self.count();
        let known = self.known.borrow();
        Outcome {
            hash: self.world.trace_hash(),
            answered: known.history.answered() - before,
            scanned: known.scanned,
            violations: known.history.check(NAMES),
            faults: self.faults,
        }
    }

    /// Interrupts a host that removes a drive.
    fn begin_to_leave(&self, place: usize) {
        self.world.start(self.hosts[0], move |_| async move {
            let array = Array::connect_with(&super::plan(), &host::options(), GUARDED).await;
            drop(leave(array, DriveIndex::new(place)).await);
        });
        self.world.run_for(Duration::from_micros(self.draw(0..200_000)));
        self.world.crash(self.hosts[0]);
    }

    /// Lets hosts use the smaller array, of which they do not reach some drives.
    fn use_without(&self, place: usize) {
        let mut out = Vec::new();
        while out.len() < OUT {
            let drive = self.draw_drive();
            if drive != place && !out.contains(&drive) {
                out.push(drive);
            }
        }
        let ends: Vec<_> = out.iter().map(|drive| self.drives[*drive].machine).collect();
        let pairs = || self.hosts.iter().flat_map(|host| ends.iter().map(|end| (*host, *end)));
        pairs().for_each(|(host, end)| self.world.partition(host, end));
        for host in 0..HOSTS {
            let known = Rc::clone(&self.known);
            let using = move |_| use_smaller(host, plan_without(place), Rc::clone(&known));
            self.world.start(self.hosts[host], using);
        }
        self.wait("hosts", || self.hosts.iter().all(|host| !self.world.is_running(*host)));
        pairs().for_each(|(host, end)| self.world.heal(host, end));
    }
}

#[test]
fn majorities_of_the_smaller_array_find_what_the_larger_one_has_acknowledged() {
    let run = |seed| {
        let lane = Lane::new(seed, GUARDED);
        lane.known.borrow_mut().codes = seed.is_multiple_of(2);
        lane.remove_one().checked()
    };
    let (mut answered, mut faults) = (0, Faults::default());
    for outcome in seeds::each(seeds(), run) {
        answered += outcome.answered;
        faults.add(outcome.faults);
    }
    let count = seeds().count();
    println!("array, a drive removed: {count} seeds, {answered} answers, {faults:?}");
    assert!(answered > 20 * count, "the hosts hardly worked: {answered}");
}

#[test]
fn equal_seeds_of_a_removal_have_equal_traces() {
    assert_eq!(Lane::new(1, GUARDED).remove_one(), Lane::new(1, GUARDED).remove_one());
}

#[test]
fn a_change_that_had_won_counts_once_the_drive_that_knows_it_is_removed() {
    for is_down in [false, true] {
        let lane = with_object();
        lane.ask(interrupted);
        if is_down {
            lane.world.crash(lane.drives[0].machine);
        }
        lane.ask(|array| async move { shrink::gather(&array, DriveIndex::default()).await })
            .expect("gathers");
        lane.world.crash(lane.drives[0].machine);
        let look = |array: Array| async move { object::lookup(&array, &name_of(0)).await };
        let before = lane.ask_of(plan_without(0), look).expect("it is there");
        assert_eq!(before.writer == [1; 16], !is_down, "{before:?}");
        let remove = |array: Array| async move { object::remove(&array, &name_of(0)).await };
        lane.ask_of(plan_without(0), remove).expect("removes");
        let found = lane.ask_of(plan_without(0), look);
        assert!(matches!(found, Err(Error::Name(NameError::Missing { .. }))), "{found:?}");
    }
}

#[test]
fn a_damaged_copy_on_a_drive_that_stays_is_written_again() {
    let lane = with_object();
    lane.ask(damage);
    lane.ask(|array| async move { shrink::gather(&array, DriveIndex::default()).await })
        .expect("gathers");
    assert!(lane.ask(is_sound), "it is still damaged");
}
