//! Every access of a short life fails, each by its number, in as many seeds as are asked for.

use std::collections::BTreeSet;

use super::kinds::Kind;
use super::{Base, Case, End, Met, Told, fault_of};
use crate::seeds;

/// Bursts of work of the short life.
const BURSTS: u64 = 2;
/// Seeds of the media: without a volatile cache, and with one.
const MEDIA: [u64; 2] = [0, 2];

/// A medium, and the accesses of a life on it.
struct Life {
    base: Base,
    accesses: Vec<(usize, Kind)>,
}

impl Life {
    fn new(seed: u64) -> Self {
        let base = Base::new(seed);
        let kinds = base.kinds(BURSTS).into_iter();
        let mut accesses: Vec<(usize, Kind)> =
            kinds.flat_map(|(kind, numbers)| numbers.into_iter().map(move |n| (n, kind))).collect();
        accesses.sort_unstable();
        Self { base, accesses }
    }
}

/// Returns the medium and the number of the access that fails in a seed, and how often it was its
/// turn before.
fn turn_of(seed: u64, counts: &[usize]) -> (usize, usize, usize) {
    let seed = usize::try_from(seed).unwrap();
    let (medium, turn) = (seed % counts.len(), seed / counts.len());
    (medium, turn % counts[medium], turn / counts[medium])
}

#[test]
fn every_access_fails_once_in_as_many_seeds_as_there_are_accesses() {
    let lives = MEDIA.map(Life::new);
    let counts = lives.iter().map(|life| life.accesses.len()).collect::<Vec<_>>();
    let met = seeds::each(seeds::seeds(), |seed| {
        let (medium, access, round) = turn_of(seed, &counts);
        let Life { base, accesses } = &lives[medium];
        let (number, kind) = accesses[access];
        let end = [End::Kill, End::PowerCut, End::Stop][(access + round) % 3];
        let case =
            Case { number, fault: fault_of(kind.operation, access + round), end, bursts: BURSTS };
        let told = Told(format!("medium {medium}: {kind}: {case:?}"));
        if let Err(text) = base.run(case, &mut Met::default()) {
            panic!("{text}");
        }
        drop(told);
        (medium, access)
    });
    let (met, all): (BTreeSet<_>, usize) = (met.into_iter().collect(), counts.iter().sum());
    println!("single accesses: {} of {all} met, of {counts:?} on {} media", met.len(), MEDIA.len());
    let enough = counts.iter().max().unwrap() * MEDIA.len();
    assert!(met.len() == all || seeds::seeds().count() < enough, "{} of {all}", met.len());
}
