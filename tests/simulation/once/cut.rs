//! The power fails at each access of a life in which the drive cleans and scrubs while hosts work,
//! each access by its number, in as many seeds as are asked for.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use super::work::work;
use super::{Base, serves_on};
use crate::seeds;

/// Bursts of work.
const BURSTS: u64 = 4;

/// A life that has done its work: its accesses, and its steps of cleaning and of the scrub.
type Ended = (usize, [u64; 2]);

/// Cuts the power when so many accesses have begun; returns what the life has done if it had ended
/// before.
fn cut_after(base: &Base, accesses: usize) -> Option<Ended> {
    let (mut lives, faulty) = base.lives();
    let known = Rc::new(RefCell::new(base.known.clone()));
    let in_work = Rc::clone(&known);
    let working = lives.begin(move |core| async move {
        let services = &core.shared.services;
        services.begin_scrub(1 << 30);
        core.gate.look();
        work(&core, BURSTS, &in_work, &Rc::default()).await;
        [&services.clean, &services.scrub].map(|it| it.steps.load(Relaxed))
    });
    lives.cut_after(&faulty, accesses, &working);
    let steps = working.take().map(|lived| lived.expect("opens"));
    let ended = steps.map(|steps| (faulty.begun().len(), steps));
    let served = serves_on(&mut lives, &known);
    served.unwrap_or_else(|why| panic!("cut after {accesses} accesses: {why}"));
    ended
}

#[test]
fn the_power_fails_at_each_access_while_the_drive_cleans_and_scrubs() {
    let base = Base::new(0);
    let (all, steps) = cut_after(&base, usize::MAX).expect("it ends");
    assert!(steps.iter().all(|count| *count > 0), "{steps:?}");
    let met = seeds::each(seeds::seeds(), |seed| {
        // Spread over all accesses as seeds go on.
        let access = usize::try_from(seed).unwrap().wrapping_mul(0x9E37_79B1) % all;
        cut_after(&base, access);
        access
    });
    let met = met.into_iter().collect::<BTreeSet<_>>().len();
    println!("cuts at accesses: {met} of {all}, {steps:?} steps of cleaning and scrub");
}
