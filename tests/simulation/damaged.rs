//! Checkpoints and hints whose sectors are torn, lost or flipped: a start walks the records in
//! their place, names them, and finds every value. Groups of several records of one shard, killed,
//! cut or stopped, and cut again during recovery.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use csd_drive::format::{HEAD_BYTES, SHARDS};
use csd_drive::media::Media;
use csd_drive::namespace::kv::hint::HINT_OFFSET;
use csd_drive::namespace::kv::record::{Place, SECTOR_BYTES};
use csd_drive::namespace::kv::recover::{load, survey};
use csd_reactor::{Buffer, random_u64};

use crate::lives::{
    Lives, NSID, SMALL, content, find, keys_of, segments_of, stop, store, together,
};
use crate::model::Model;
use crate::seeds;

const SHARD: usize = 6;
const KEYS: u64 = 40;
const LIVES: usize = 4;

/// Faults and their effects, counted.
#[derive(Debug, Default)]
struct Met {
    flipped_checkpoints: u64,
    lost_checkpoints: u64,
    stale_checkpoints: u64,
    flipped_hints: u64,
    lost_hints: u64,
    cuts_in_recovery: u64,
    walked: u64,
    checkpoints: u64,
    shared_groups: u64,
}

type Known = Rc<RefCell<Model<u64>>>;

fn key(number: u64) -> csd_nvme::kv::Key {
    keys_of(SHARD).nth(usize::try_from(number).unwrap()).unwrap()
}

async fn change(core: Rc<csd_drive::drive::Core>, number: u64, known: Known) {
    let draw = random_u64();
    let bytes = [16, 0, 16, 100, 100, 9_000, 0, 40][usize::try_from(draw >> 8).unwrap() % 8];
    let state = (!draw.is_multiple_of(7)).then(|| content(draw, bytes));
    known.borrow_mut().asked(number, state.clone());
    match &state {
        Some(value) => store(&core, key(number), value).await.expect("stored"),
        None => core.kv.delete(NSID, key(number)).await.expect("deleted"),
    }
    known.borrow_mut().acknowledged(number, state.clone());
    known.borrow_mut().durable(number, state);
}

/// Changes keys in bursts until the power is cut, or stops.
fn work(lives: &mut Lives, known: &Known, met: &Rc<RefCell<Met>>) {
    let (ends, known, met) = (lives.draw(3), Rc::clone(known), Rc::clone(met));
    let life = lives.begin(move |core| async move {
        for _ in 0..40 {
            let draw = random_u64();
            let numbers = (0..KEYS).filter(|number| draw >> number & 1 == 1);
            let changes = numbers.map(|it| change(Rc::clone(&core), it, Rc::clone(&known)));
            together(changes.collect::<Vec<_>>()).await;
            let segments = &core.shared.segments;
            let mut met = met.borrow_mut();
            met.checkpoints = met.checkpoints.max(segments.checkpoint_count());
            met.shared_groups += u64::from(segments.shared_group_count() > 0);
        }
        if ends == 0 {
            stop(&core).await;
        }
    });
    match ends {
        // A life cut in its middle.
        1 => lives.world.run_for(Duration::from_micros(lives.draw(60_000))),
        _ => lives.end(&life).expect("lived"),
    }
    // The power goes, or only the process.
    if lives.draw(2) == 0 { lives.cut_at_random() } else { lives.cut(|| 0) }
}

/// Returns the offsets on the medium of every checkpoint that a seal, a hint or another checkpoint
/// names and of every valid hint, and the size of a segment.
async fn targets(media: Media) -> (Vec<Place>, Vec<u64>, u64) {
    let segments = segments_of(&media).await;
    let (mut checkpoints, mut hints) = (Vec::new(), Vec::new());
    for found in survey(&media, &segments, SHARDS, 0).await.expect("whole") {
        hints.extend(found.hint.map(|_| segments.at(found.number, HINT_OFFSET)));
        let mut next = found.checkpoint(&segments);
        while let Some(place) = next {
            // One that an earlier life has damaged leads nowhere.
            let Some(loaded) = load(&media, &segments, &found, place).await else { break };
            let offset = segments.at(found.number, place.offset);
            let bytes = 64 + u64::from(loaded.header.list_bytes);
            checkpoints.push(Place { offset, bytes });
            next = loaded.header.previous;
        }
    }
    (checkpoints, hints, segments.segment_bytes)
}

/// Returns the number of the segment at an offset on the medium.
fn index(at: u64, segment_bytes: u64) -> u64 {
    (at - HEAD_BYTES) / segment_bytes
}

/// Returns the places in segments that were not damaged before: two damaged checkpoints of a
/// segment may look like a damaged record.
fn fresh<T>(
    all: Vec<T>,
    offset: impl Fn(&T) -> u64,
    damaged: &BTreeSet<u64>,
    bytes: u64,
) -> Vec<T> {
    all.into_iter().filter(|it| !damaged.contains(&index(offset(it), bytes))).collect()
}

async fn overwrite(media: Media, at: u64, bytes: Vec<u8>) {
    media.write(at, vec![Buffer::from_slice(&bytes)]).await.0.expect("written");
}

async fn flip(media: Media, at: u64, mask: u8) {
    let (_, byte) = media.read(at, Buffer::zeroed(1)).await;
    overwrite(media, at, vec![byte[0] ^ mask]).await;
}

/// Damages a checkpoint or a hint; returns true if it is a checkpoint.
fn damage(lives: &Lives, damaged: &mut BTreeSet<u64>, met: &Rc<RefCell<Met>>) -> bool {
    let (checkpoints, hints, bytes) = lives.inspect(targets);
    let checkpoints = fresh(checkpoints, |place| place.offset, damaged, bytes);
    let hints = fresh(hints, |at| *at, damaged, bytes);
    let mut met = met.borrow_mut();
    let mask = 1u8 << lives.draw(8);
    if checkpoints.is_empty() || (lives.draw(3) == 0 && !hints.is_empty()) {
        let Some(at) = hints.first().copied() else { return false };
        if lives.draw(2) == 0 {
            met.flipped_hints += 1;
            let at = at + lives.draw(64);
            lives.inspect(move |media| flip(media, at, mask));
        } else {
            met.lost_hints += 1;
            lives.inspect(move |media| overwrite(media, at, vec![0; 512]));
        }
        return false;
    }
    let place = checkpoints[usize::try_from(lives.draw(checkpoints.len() as u64)).unwrap()];
    damaged.insert(index(place.offset, bytes));
    // Sectors that hold nothing else.
    let sectors = place.bytes / SECTOR_BYTES;
    if sectors == 0 || lives.draw(2) == 0 {
        met.flipped_checkpoints += 1;
        let at = place.offset + lives.draw(place.bytes);
        lives.inspect(move |media| flip(media, at, mask));
        return true;
    }
    let at = place.offset + lives.draw(sectors) * SECTOR_BYTES;
    let byte = if lives.draw(2) == 0 { 0 } else { 0xA5 };
    met.lost_checkpoints += u64::from(byte == 0);
    met.stale_checkpoints += u64::from(byte != 0);
    lives.inspect(move |media| overwrite(media, at, vec![byte; 512]));
    true
}

/// Opens the drive, perhaps after cuts during recovery, and reads every key.
fn verify(lives: &mut Lives, known: &Known, met: &Rc<RefCell<Met>>) -> Result<u64, String> {
    while lives.draw(3) == 0 {
        drop(lives.begin(|_| std::future::pending::<()>()));
        lives.world.run_for(Duration::from_micros(lives.draw(20_000)));
        lives.cut_at_random();
        met.borrow_mut().cuts_in_recovery += 1;
    }
    let known = Rc::clone(known);
    let walked = lives.live(move |core| async move {
        let numbers = known.borrow().keys();
        for number in numbers {
            let found = find(&core, key(number)).await.map_err(|status| status.to_string())?;
            known.borrow_mut().recovered(number, found)?;
        }
        Ok::<_, String>(core.shared.segments.damaged_checkpoints().len() as u64)
    })??;
    lives.cut_at_random();
    Ok(walked)
}

fn run(seed: u64, met: &Rc<RefCell<Met>>) -> Result<(), String> {
    let mut lives = Lives::new(seed, 1 + usize::try_from(seed % 2).unwrap(), SMALL);
    let (known, mut damaged) = (Known::default(), BTreeSet::new());
    for _ in 0..LIVES {
        work(&mut lives, &known, met);
        let was_checkpoint = damage(&lives, &mut damaged, met);
        let cuts = met.borrow().cuts_in_recovery;
        let walked = verify(&mut lives, &known, met)?;
        met.borrow_mut().walked += walked;
        let was_cut = met.borrow().cuts_in_recovery > cuts;
        if was_checkpoint && walked == 0 && !was_cut {
            return Err("a damaged checkpoint was not named".to_owned());
        }
        verify(&mut lives, &known, met)?;
    }
    Ok(())
}

#[test]
fn damaged_checkpoints_and_hints_hide_nothing() {
    let met = Rc::new(RefCell::new(Met::default()));
    for seed in seeds() {
        assert_eq!(run(seed, &met), Ok(()), "CSD_SIM_SEEDS={seed}..{} repeats it", seed + 1);
    }
    let met = met.borrow();
    println!("{} seeds: {met:?}", seeds().count());
    let faults = [met.flipped_checkpoints, met.lost_checkpoints, met.stale_checkpoints];
    let more = [met.flipped_hints, met.lost_hints, met.cuts_in_recovery, met.walked];
    let all_met = faults.iter().chain(&more).all(|count| *count > 0);
    assert!(all_met || seeds().count() < 50, "{met:?}");
    assert!(met.checkpoints > 4 && met.shared_groups > 0, "{met:?}");
}
