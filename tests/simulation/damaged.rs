//! Checkpoints and hints whose sectors are torn, lost or flipped: a start walks the records in
//! their place, names them, and finds every value. Groups of several records of one shard, killed,
//! cut or stopped, and cut again during recovery.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use csd_kvlog::format::{HEAD_BYTES, SHARDS};
use csd_kvlog::hint::HINT_OFFSET;
use csd_kvlog::media::Media;
use csd_kvlog::record::SECTOR_BYTES;
use csd_kvlog::recover::by_checkpoints::load;
use csd_kvlog::recover::survey;
use csd_reactor::{Buffer, random_u64};

use crate::lives::{
    Lives, NSID, SMALL, content, find, keys_of, segments_of, stop, store, together,
};
use crate::model::Model;
use crate::seeds;

const SHARD: usize = 6;
const KEYS: u64 = 40;
const LIVES: usize = 4;

/// Kinds of damage: a flipped bit, a sector of zeros, a sector of other bytes.
const KINDS: [&str; 5] =
    ["flipped checkpoints", "lost checkpoints", "stale checkpoints", "flipped hints", "lost hints"];
/// Least number of each kind in 50 runs.
const EACH_MIN: u64 = 20;

/// Faults and their effects, counted.
#[derive(Debug, Default)]
struct Met {
    /// By number in [`KINDS`].
    damage: [u64; KINDS.len()],
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

/// A checkpoint that something names.
#[derive(Clone, Copy)]
struct Target {
    /// Offset on the medium.
    offset: u64,
    /// Length in bytes, header and list.
    bytes: u64,
    /// Number of its sectors that hold nothing else.
    sectors: u64,
}

/// Returns every checkpoint that a seal, a hint or another checkpoint names, the offset on the
/// medium of every valid hint, and the size of a segment.
async fn targets(media: Media) -> (Vec<Target>, Vec<u64>, u64) {
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
            // Records follow on one among them. Behind a final one there is nothing.
            let sectors = match loaded.header.is_final {
                true => bytes.div_ceil(SECTOR_BYTES),
                false => bytes / SECTOR_BYTES,
            };
            checkpoints.push(Target { offset, bytes, sectors });
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

/// Damages a checkpoint or a hint, whichever kind of damage was met least so far among those that
/// are possible; returns true if it is a checkpoint.
fn damage(lives: &Lives, damaged: &mut BTreeSet<u64>, met: &Rc<RefCell<Met>>) -> bool {
    let (checkpoints, hints, bytes) = lives.inspect(targets);
    let checkpoints = fresh(checkpoints, |target| target.offset, damaged, bytes);
    let with_sectors: Vec<Target> =
        checkpoints.iter().copied().filter(|target| target.sectors > 0).collect();
    let hints = fresh(hints, |at| *at, damaged, bytes);
    let mut met = met.borrow_mut();
    let Met { damage: counts, .. } = &mut *met;
    let is_possible = |kind: &usize| match kind {
        0 => !checkpoints.is_empty(),
        1 | 2 => !with_sectors.is_empty(),
        _ => !hints.is_empty(),
    };
    let least = (0..KINDS.len()).filter(is_possible).min_by_key(|kind| counts[*kind]);
    let Some(kind) = least else { return false };
    counts[kind] += 1;
    let mask = 1u8 << lives.draw(8);
    if kind > 2 {
        let at = hints[usize::try_from(lives.draw(hints.len() as u64)).unwrap()];
        match kind {
            3 => lives.inspect({
                let at = at + lives.draw(64);
                move |media| flip(media, at, mask)
            }),
            _ => lives.inspect(move |media| overwrite(media, at, vec![0; 512])),
        }
        return false;
    }
    let of = if kind == 0 { &checkpoints } else { &with_sectors };
    let target = of[usize::try_from(lives.draw(of.len() as u64)).unwrap()];
    damaged.insert(index(target.offset, bytes));
    if kind == 0 {
        let at = target.offset + lives.draw(target.bytes);
        lives.inspect(move |media| flip(media, at, mask));
    } else {
        let at = target.offset + lives.draw(target.sectors) * SECTOR_BYTES;
        let byte = if kind == 1 { 0 } else { 0xA5 };
        lives.inspect(move |media| overwrite(media, at, vec![byte; 512]));
    }
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
    // A power cut before the medium is formatted would leave no drive.
    lives.live(|_| async {})?;
    lives.cut_at_random();
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
    let by_kind: Vec<String> =
        KINDS.iter().zip(met.damage).map(|(kind, count)| format!("{count} {kind}")).collect();
    println!("damaged lists: {} seeds: {}; {met:?}", seeds().count(), by_kind.join(", "));
    let all_met = met.damage.iter().all(|count| *count >= EACH_MIN);
    let others_met = met.cuts_in_recovery > 0 && met.walked > 0;
    assert!((all_met && others_met) || seeds().count() < 50, "{by_kind:?}, {met:?}");
    assert!(met.checkpoints > 4 && met.shared_groups > 0, "{met:?}");
}
