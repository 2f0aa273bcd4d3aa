//! A log filled with as much as the drive announces, and overwritten for ten times its size: every
//! Store succeeds, and every value is there after a restart.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use csd_drive::drive::Core;
use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, random_u64};

use crate::lives::{Lives, NSID, SMALL, content, find, stop, store, together};
use crate::seeds;

/// One kind of load.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// Bytes of each value: one of these at random.
    sizes: &'static [usize],
    /// Percent of the announced capacity that is in use while values are overwritten.
    percent: u64,
    /// Percentage of the capacity that is written in all.
    rounds_percent: u64,
    /// Concurrent Stores.
    depth: usize,
}

fn key(number: u64) -> Key {
    Key::new(&number.to_be_bytes()).unwrap()
}

fn used(core: &Core) -> u64 {
    let used = |namespace: &csd_kvlog::segments::KvNamespace| {
        namespace.used_bytes.load(std::sync::atomic::Ordering::Relaxed)
    };
    core.shared.segments.namespaces.iter().map(used).sum()
}

/// Current content of each key: its size and the number that made it.
type Contents = Rc<RefCell<Vec<(usize, u64)>>>;

fn draw(load: &Load) -> (usize, u64) {
    let sizes = load.sizes;
    (sizes[usize::try_from(random_u64() % sizes.len() as u64).unwrap()], random_u64() >> 32)
}

/// Fills the drive, then overwrites keys at random; each task has keys of its own.
async fn overwrite(core: Rc<Core>, load: Load, contents: Contents) -> Result<(), Status> {
    let capacity = core.shared.segments.capacity_bytes();
    while used(&core) < capacity / 100 * load.percent {
        let first = contents.borrow().len() as u64;
        let more: Vec<_> =
            (0..load.depth as u64).map(|index| (first + index, draw(&load))).collect();
        let stores = more.iter().map(|(number, (bytes, seed))| {
            let (core, number, value) = (Rc::clone(&core), *number, content(*seed, *bytes));
            async move { store(&core, key(number), &value).await }
        });
        together(stores).await.into_iter().collect::<Result<(), _>>()?;
        contents.borrow_mut().extend(more.into_iter().map(|(_, content)| content));
    }
    let target = core.shared.segments.stored_bytes() + capacity / 100 * load.rounds_percent;
    let tasks = (0..load.depth).map(|task| {
        let (core, contents) = (Rc::clone(&core), Rc::clone(&contents));
        async move {
            let own = contents.borrow().len() / load.depth;
            while core.shared.segments.stored_bytes() < target {
                let index = task * own + usize::try_from(random_u64() % own as u64).unwrap();
                let (_, number) = draw(&load);
                // Of the same size, so that as much stays in use.
                let bytes = contents.borrow()[index].0;
                store(&core, key(index as u64), &content(number, bytes)).await?;
                contents.borrow_mut()[index] = (bytes, number);
            }
            Ok(())
        }
    });
    together(tasks).await.into_iter().collect()
}

/// Runs a load on a drive of this size; returns the bytes written per byte stored.
fn run(seed: u64, bytes: u64, load: Load) -> f64 {
    let mut lives = Lives::new(seed, 1 + usize::try_from(seed % 2).unwrap(), bytes);
    let contents = Contents::default();
    let known = Rc::clone(&contents);
    let factor = lives.live(move |core| async move {
        overwrite(Rc::clone(&core), load, known).await?;
        let segments = &core.shared.segments;
        let factor = segments.written_bytes() as f64 / segments.stored_bytes() as f64;
        let steps = core.shared.services.clean.steps.load(Relaxed);
        assert!(load.percent < 85 || steps > 0, "only commands that waited for it cleaned");
        if seed.is_multiple_of(2) {
            stop(&core).await;
        }
        Ok::<f64, Status>(factor)
    });
    let factor = factor.unwrap().unwrap_or_else(|status| panic!("{load:?}, seed {seed}: {status}"));
    lives.cut_at_random();
    let known = Rc::clone(&contents);
    let restarted = lives.live(move |core| async move {
        let count = known.borrow().len();
        for index in 0..count {
            let (bytes, number) = known.borrow()[index];
            let found = find(&core, key(index as u64)).await;
            assert!(
                found == Ok(Some(content(number, bytes))),
                "key {index}: {:?}",
                found.map(|_| ())
            );
        }
        // The full drive still takes what it took before.
        let more = Load { rounds_percent: 20, ..load };
        overwrite(Rc::clone(&core), more, known).await?;
        // And can be emptied.
        for index in 0..count {
            core.kv.delete(NSID, key(index as u64)).await?;
        }
        assert_eq!(used(&core), 0);
        let value = vec![Buffer::zeroed(200)];
        core.kv.store(NSID, key(0), value, 0).await
    });
    assert_eq!(restarted, Ok(Ok(())), "{load:?}, seed {seed}");
    let losses = lives.disk.losses();
    println!("{load:?}: {factor:.2} bytes written for each byte stored, {losses:?}");
    factor
}

/// Runs the first seed, or one of 45 if seeds were asked for: it takes as long as dozens of seeds
/// of the other lanes.
fn each_seed(run: impl Fn(u64) + Sync) {
    let asked = std::env::var_os("CSD_SIM_SEEDS").is_some();
    seeds::each(seeds().step_by(45).take(if asked { usize::MAX } else { 1 }), run);
}

#[test]
fn pages_overwritten_on_a_drive_that_is_nearly_full() {
    each_seed(|seed| {
        let load = Load { sizes: &[4096], percent: 85, rounds_percent: 1000, depth: 32 };
        let factor = run(seed, SMALL, load);
        assert!(factor < 6.0, "{factor} bytes written for each byte stored");
        run(seed, SMALL, Load { percent: 95, rounds_percent: 200, ..load });
    });
}

#[test]
fn short_values_overwritten_on_a_drive_that_is_nearly_full() {
    each_seed(|seed| {
        let load = Load { sizes: &[50], percent: 60, rounds_percent: 100, depth: 64 };
        run(seed, SMALL, load);
        // Alone, so that each begins a page.
        run(seed, SMALL, Load { percent: 10, rounds_percent: 20, depth: 1, ..load });
    });
}

#[test]
fn values_of_all_lengths_overwritten_on_a_drive_that_is_nearly_full() {
    each_seed(|seed| {
        let sizes = &[0, 100, 4096, 20_000, 100_000, 256 << 10];
        run(seed, SMALL, Load { sizes, percent: 85, rounds_percent: 300, depth: 8 });
    });
}

#[test]
fn the_longest_values_fill_what_the_drive_announces() {
    for bytes in [SMALL, 1 << 30] {
        let mut lives = Lives::new(3, 1, bytes);
        let share = lives.live(|core| async move {
            let (longest, mut count) = (core.value_bytes_max as usize, 0u64);
            let value = Buffer::zeroed(longest);
            while core.kv.store(NSID, key(count), vec![Buffer::from_slice(&value)], 0).await.is_ok()
            {
                count += 1;
            }
            let stored = count * longest as u64;
            (
                stored * 100 / core.shared.segments.capacity_bytes(),
                stored * 100 / core.shared.superblock.kv_length(),
            )
        });
        let (of_announced, of_given) = share.unwrap();
        println!("{bytes} bytes: {of_announced} % of NSZE, {of_given} % of the log");
        assert!(of_announced >= 85, "{bytes} bytes: {of_announced} % of NSZE");
        assert!(bytes < 1 << 30 || of_given >= 85, "{bytes} bytes: {of_given} % of the log");
    }
}

/// Load of a host that keeps objects: long values of one length, and for each object a few short
/// ones, some of which are replaced or deleted at once.
#[test]
fn objects_fill_what_the_drive_announces_but_for_a_little() {
    for (bytes, chunks) in [(1 << 30, 20), (1 << 30, 1), (7 << 28, 20)] {
        let mut lives = Lives::new(5, 1, bytes);
        let (stored, wanted, given) = lives
            .live(move |core| async move {
                let chunk_bytes = (core.value_bytes_max as usize).min(1 << 20);
                let capacity = core.shared.segments.capacity_bytes();
                let wanted = capacity - capacity / 64;
                let mut stored = 0;
                while used(&core) + (chunks * (chunk_bytes + 64) + 4096) as u64 <= wanted {
                    if let Err(status) = put_object(&core, stored, chunks, chunk_bytes).await {
                        panic!("{status} at {} of {capacity}", used(&core));
                    }
                    stored += chunks as u64;
                }
                (stored * chunk_bytes as u64, wanted, core.shared.superblock.kv_length())
            })
            .unwrap();
        println!("{bytes} bytes: {stored} of {wanted}, {} % of the log", stored * 100 / given);
        assert!(stored * 100 >= given * 85, "{bytes} bytes: {stored} of {given}");
    }
}

/// Stores the chunks of one object, and its entries in the catalogue.
async fn put_object(
    core: &Rc<Core>,
    first: u64,
    chunks: usize,
    chunk_bytes: usize,
) -> Result<(), Status> {
    let small = |number: u64| key(first << 8 | number | 1 << 63);
    for number in [0, 1, 0] {
        store(core, small(number), &[1; 400]).await?;
    }
    for at in (0..chunks).step_by(4) {
        let stores = (at..chunks.min(at + 4)).map(|chunk| {
            let (core, key) = (Rc::clone(core), key(first + chunk as u64));
            async move { core.kv.store(NSID, key, vec![Buffer::zeroed(chunk_bytes)], 0).await }
        });
        together(stores).await.into_iter().collect::<Result<(), _>>()?;
    }
    store(core, small(0), &[2; 400]).await?;
    core.kv.delete(NSID, small(1)).await
}
