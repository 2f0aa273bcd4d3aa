//! Sectors of zeros in places of the log where they could be taken for its padding, or be read by a
//! later start alone.

use std::rc::Rc;

use csd_drive::drive::Core;
use csd_kvlog::format::HEAD_BYTES;
use csd_kvlog::media::Media;
use csd_kvlog::record::{PAGE_BYTES, RECORDS_OFFSET, SECTOR_BYTES};
use csd_reactor::Buffer;

use crate::lives::{Lives, SMALL, content, find, keys_of, stop, store, together};
use crate::sectors::{STARTS, WITH_KEYS, places};

async fn zero(media: Media, at: u64) {
    let zeros = Buffer::zeroed(usize::try_from(SECTOR_BYTES).unwrap());
    media.write(at, vec![zeros]).await.0.expect("written");
}

/// Overwrites a key of one shard so often, or until a second segment begins; returns how often.
async fn overwrite(core: Rc<Core>, most: usize) -> usize {
    let key = keys_of(WITH_KEYS[0]).next().unwrap();
    for number in 0..most {
        store(&core, key, &content(number as u64, 1_000)).await.expect("stored");
        if core.shared.segments.free_count() + 2 == core.shared.segments.count as usize {
            return number;
        }
    }
    most
}

/// A segment that a kill leaves nearly full has room for its final checkpoint, so later starts do
/// not read the records that it lists.
#[test]
fn damage_in_superseded_records_of_a_full_segment_stays_without_effect() {
    let fill = |most: usize| {
        let mut lives = Lives::new(5, 1, SMALL);
        let count = lives.live(move |core| overwrite(core, most)).expect("lived");
        lives.cut(|| 0);
        (lives, count)
    };
    let (_, count) = fill(usize::MAX);
    let (mut lives, _) = fill(count);
    let (places, segment_bytes) = lives.inspect(places);
    let first = places.iter().map(|place| place.1).filter(|at| *at >= HEAD_BYTES).min().unwrap();
    let last = places.iter().filter(|place| place.0 == 4).map(|place| place.1).max().unwrap();
    assert!(last + 2 * PAGE_BYTES > HEAD_BYTES + segment_bytes, "not full: {last}");
    let at = first + RECORDS_OFFSET + 8 * SECTOR_BYTES;
    lives.inspect(move |media| zero(media, at));
    for start in 0..STARTS {
        let found = lives.live(move |core| async move {
            let key = keys_of(WITH_KEYS[0]).next().unwrap();
            let found = find(&core, key).await;
            stop(&core).await;
            found == Ok(Some(content(count as u64 - 1, 1_000)))
        });
        assert_eq!(found, Ok(true), "start {start}");
        lives.cut(|| 1);
    }
}

/// Short values that are overwritten together, in a group that begins with a checkpoint if the log
/// has the right number of long values before. Each of the last sectors is zeroed in turn, after a
/// kill. Returns how often starts were refused, and reads failed.
fn zeroed_sectors(long_values: usize) -> [usize; 2] {
    const SHORT: usize = 12;
    let short = || keys_of(WITH_KEYS[0]).skip(100).take(SHORT).enumerate();
    let text = |round: u64, index: usize| content(round << 8 | index as u64, 150);
    let mut lives = Lives::new(6, 1, SMALL);
    let lived = lives.live(move |core| async move {
        for round in 0..2 {
            let stores = short().map(|(index, key)| {
                let core = Rc::clone(&core);
                async move { store(&core, key, &text(round, index)).await.expect("stored") }
            });
            together(stores.collect::<Vec<_>>()).await;
            let count = if round == 0 { long_values } else { 1 };
            for (number, key) in keys_of(WITH_KEYS[0]).take(count).enumerate() {
                store(&core, key, &content(number as u64, 1_000)).await.expect("stored");
            }
        }
    });
    assert_eq!(lived, Ok(()));
    lives.cut(|| 0);
    let (places, _) = lives.inspect(places);
    let whole = lives.disk.copied();
    let mut sectors: Vec<u64> =
        places.iter().filter(|place| [3, 4].contains(&place.0)).map(|place| place.1).collect();
    sectors.sort_unstable();
    let (mut refused, mut failed) = (0, 0);
    for at in sectors.into_iter().rev().take(20) {
        lives.on_disk(whole.copied());
        lives.inspect(move |media| zero(media, at));
        let found = lives.live(move |core| async move {
            let mut failed = 0;
            for (index, key) in short() {
                match find(&core, key).await {
                    Ok(found) => assert_eq!(found, Some(text(1, index)), "key {index} at {at}"),
                    Err(_) => failed += 1,
                }
            }
            failed
        });
        lives.cut(|| 0);
        refused += usize::from(found.is_err());
        failed += found.unwrap_or(0);
    }
    [refused, failed]
}

#[test]
fn a_zeroed_sector_in_a_group_with_a_checkpoint_hides_no_record() {
    let met: Vec<_> = (32..48).map(zeroed_sectors).collect();
    println!("zeroed sectors at the end of a log, refused and failed reads: {met:?}");
    assert!(met.iter().all(|[refused, failed]| refused + failed > 0), "{met:?}");
}
