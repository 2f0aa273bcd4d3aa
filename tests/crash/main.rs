//! The crash lane runs the real program on a medium that loses unsynced data when the process is
//! killed, at any moment, recovery included. Then it compares the data that a host finds with the
//! answers that the host got.
//!
//! The workload and its checker are those of the simulation lane. A seed determines a round:
//! options of the drive, requests of hosts, the end of each life and the sectors that land. The
//! machine determines when each request arrives, so a failed seed may need several repetitions:
//! `make crash ROUNDS=1 SEED=n`. The lane needs root and `/dev/fuse`, and prints a line if it is
//! skipped.
//!
//! - [`medium`]: the disk; [`faults`]: its faults; [`cache`]: its sectors; [`mount`]: the file
//!   system
//! - [`drive`]: the process; [`lives`]: its starts and ends; [`mod@round`]: rounds of them
//! - [`cached`]: rounds with and without a volatile cache in turns
//! - [`torn`]: groups of records that a cut tears at a chosen place
//! - [`failing`]: disks that fail; [`single`]: disks that fail a single request

#![allow(clippy::unwrap_used)] // in a test a panic is the report

mod cache;
mod cached;
mod drive;
mod failing;
mod faults;
mod lives;
mod medium;
mod mount;
mod round;
mod single;
mod torn;

// Modules of other lanes, which use more of them.
#[allow(dead_code, missing_docs, unreachable_pub)]
#[path = "../simulation/blocks.rs"]
mod blocks;
#[allow(dead_code)]
#[path = "../e2e/support/data.rs"]
mod data;
#[allow(dead_code)]
#[path = "../e2e/support/harness.rs"]
mod harness;
#[allow(dead_code, missing_docs, unreachable_pub)]
#[path = "../simulation/model.rs"]
mod model;
#[allow(missing_docs, unreachable_pub)]
#[path = "../simulation/order.rs"]
mod order;
#[allow(missing_docs, unreachable_pub)]
#[path = "../simulation/words.rs"]
mod words;
#[allow(dead_code, missing_docs, unreachable_pub)]
#[path = "../simulation/workload.rs"]
mod workload;
#[allow(missing_docs, unreachable_pub)]
#[path = "../simulation/writer.rs"]
mod writer;

use std::cell::RefCell;
use std::io::Write;

use csd_reactor::{Config, block_on};
use round::{Round, Totals};

/// Endless numbers from a seed.
pub(crate) type Numbers = Box<dyn Iterator<Item = u64> + Send>;

const ROUNDS_SHORT: u64 = 5;
const SEED: u64 = 1;

thread_local! {
    /// Source of random numbers for the workload on this thread.
    static DRAWN: RefCell<Numbers> = RefCell::new(seeded(0));
}

pub(crate) fn seeded(seed: u64) -> Numbers {
    Box::new(data::numbers(seed, usize::MAX))
}

/// Returns a random number for the workload.
pub(crate) fn random_u64() -> u64 {
    DRAWN.with_borrow_mut(|numbers| numbers.next().expect("endless"))
}

/// Runs a host's future to its end, on its own core, with random numbers from `seed`.
pub(crate) fn on_host<T: Send + 'static, Fut: Future<Output = T> + 'static>(
    seed: u64,
    main: impl FnOnce() -> Fut + Send + 'static,
) -> Result<T, String> {
    let config = Config { name: "host".to_owned(), ..Config::default() };
    let host = move || {
        DRAWN.set(seeded(seed ^ u64::MAX));
        main()
    };
    block_on(&config, host).map_err(|error| error.to_string())
}

/// Prints a line even if the output of tests is captured, which `eprintln!` would not.
#[allow(clippy::explicit_write)]
pub(crate) fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").unwrap();
}

/// Returns true if the lane can run here; prints the reason if not.
pub(crate) fn can_run() -> bool {
    if let Some(why) = mount::missing() {
        say(&format!("crash lane skipped: {why}"));
        return false;
    }
    true
}

/// Returns a number from the environment.
fn asked(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// Runs as many rounds as were asked for, each from a seed of its own, and fails if one did or if
/// nothing of a kind has happened in many.
fn run_rounds<Fut: Future<Output = (Result<(), String>, Totals)> + 'static>(
    lane: &str,
    round: impl Fn(Numbers) -> Fut + Copy + Send + 'static,
) {
    if !can_run() {
        return;
    }
    let (rounds, seed) = (asked("CSD_CRASH_ROUNDS", ROUNDS_SHORT), asked("CSD_CRASH_SEED", SEED));
    let (mut all, mut violations) = (Totals::new(), Vec::new());
    for number in 0..rounds {
        let seed = seed + number;
        let ended = on_host(seed, move || round(seeded(seed)));
        let found = match ended {
            Ok((result, totals)) => {
                totals.iter().for_each(|(what, more)| *all.entry(*what).or_default() += *more);
                result
            }
            Err(text) => Err(text),
        };
        if let Err(text) = found {
            let how = format!("make crash ROUNDS=1 SEED={seed}");
            let text = format!("seed {seed} (round {number}): {text}\n  repeat it with {how}");
            println!("{text}");
            violations.push(text);
        }
    }
    let counts: Vec<String> = all.iter().map(|(what, count)| format!("{count} {what}")).collect();
    let (counts, failed) = (counts.join(", "), violations.len());
    say(&format!("{lane}: {rounds} rounds, {failed} with violations; {counts}"));
    assert!(violations.is_empty(), "{}", violations.join("\n"));
    // Events that are only likely in one round are certain in many.
    for (what, count) in all {
        assert!(count > 0 || rounds < 50, "the lane was idle: no {what}");
    }
}

#[test]
fn nothing_acknowledged_is_lost_with_a_process_and_its_power() {
    run_rounds("crash lane", |numbers| Round::new(numbers).run());
}
