//! A new drive whose medium changes what was stored, while it is handed over: the host reads what
//! it has stored, so the hand-over fails, and the next one stores these pieces again.

use std::time::Duration;

use super::{HandedOver, NEW, Run, hand_over};
use crate::array::at_rest;
use crate::array::flips::flip_bit;
use crate::array::medium::AtRest;
use crate::array::pace::{ask, begin};
use crate::array::pieces::Sound;
use crate::seeds;

/// Numbers of bits that flipped on the new drive, and of hand-overs that failed.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    flips: u64,
    failed: u64,
}

/// Flips a bit of each piece that has come to the new drive since.
fn flip_new(run: &Run, flipped: &mut Vec<u64>) {
    let mut media = run.lane.media_at_rest();
    media[run.place] = AtRest::of(&run.lane.drives[NEW].disk);
    for entry in at_rest::sealed(&media) {
        for piece in Sound::spare(&media, &entry) {
            let at = media[run.place].place_of(&piece).filter(|_| piece.drive == run.place);
            if let Some(at) = at.filter(|at| !flipped.contains(at)) {
                flip_bit(&run.lane.drives[NEW].disk, at, run.lane.draw(0..8));
                flipped.push(at);
            }
        }
    }
}

fn rot(seed: u64) -> Counts {
    let mut run = Run::new(seed);
    run.start_new();
    let place = run.place;
    let done = begin(&run.lane, 0, async move |array| {
        hand_over(&array, place, &mut HandedOver::default()).await.map_err(|why| why.to_string())
    });
    let mut flipped = Vec::new();
    while run.lane.world.is_running(run.lane.hosts[0]) {
        run.lane.world.run_for(Duration::from_micros(300));
        flip_new(&run, &mut flipped);
    }
    let done = done.take().expect("the host has answered");
    let words = "does not return the piece that was stored";
    assert!(
        done.as_ref().is_ok() || done.as_ref().is_err_and(|why| why.contains(words)),
        "{done:?}"
    );
    ask(&run.lane, 0, async move |array| {
        hand_over(&array, place, &mut HandedOver::default()).await.expect("hands over")
    });
    run.replace();
    Counts { flips: flipped.len() as u64, failed: u64::from(done.is_err()) }
}

#[test]
fn a_new_drive_that_changes_what_was_stored_is_found_out() {
    let mut all = Counts::default();
    for counts in seeds::each(seeds(), rot) {
        all.flips += counts.flips;
        all.failed += counts.failed;
    }
    let count = seeds().count() as u64;
    println!("array, a new drive that rots: {count} seeds, {all:?}");
    assert!(count < 5 || all.failed > count / 2, "{all:?}");
}
