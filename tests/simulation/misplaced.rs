//! Sectors that hold what belongs to another place of the medium, or to an earlier moment, each
//! put there by hand: a start refuses the medium and names what is wrong, and what a former drive
//! has left on the medium is no damage.
//!
//! The lane of damaged sectors draws such places at random, and most draws meet a check before
//! the one that is tested here.

use csd_kvlog::format::SHARDS;
use csd_kvlog::hint::HINT_OFFSET;
use csd_kvlog::media::Media;
use csd_kvlog::record::{PAGE_BYTES, Record, SECTOR_BYTES, footprint};
use csd_kvlog::recover::{Found, survey};
use csd_kvlog::segment_head::SegmentHeader;
use csd_kvlog::segments::Segments;
use csd_kvlog::walk::Step;
use csd_nvme::kv::Key;
use csd_reactor::Buffer;

use crate::lives::{Lives, SMALL, content, find, keys_of, segments_of, stop, store};

const SHARD: usize = 3;
/// Fills a segment soon.
const LONG: usize = 200_000;

fn key(number: usize) -> Key {
    keys_of(SHARD).nth(number).unwrap()
}

fn start() -> Lives {
    Lives::new(1, 1, SMALL)
}

/// Stores values of this length under different keys, in a life that is stopped or killed.
fn fill(lives: &mut Lives, count: usize, bytes: usize, stops: bool) {
    let lived = lives.live(move |core| async move {
        for number in 0..count {
            store(&core, key(number), &content(number as u64, bytes)).await.expect("stored");
        }
        if stops {
            stop(&core).await;
        }
    });
    assert_eq!(lived, Ok(()));
    lives.cut(|| u64::from(stops));
}

/// Returns the segments of the shard, oldest first, and the number of a free one.
async fn own(media: &Media) -> (Segments, Vec<Found>, u32) {
    let segments = segments_of(media).await;
    let mut found = survey(media, &segments, SHARDS, 0).await.expect("whole");
    let free = (0..segments.count).find(|at| found.iter().all(|found| found.number != *at));
    found.retain(|found| found.shard as usize == SHARD);
    (segments, found, free.expect("one is free"))
}

async fn read(media: &Media, at: u64, bytes: u64) -> Buffer {
    let (result, bytes) = media.read(at, Buffer::zeroed(usize::try_from(bytes).unwrap())).await;
    result.expect("read");
    bytes
}

async fn copy(media: &Media, from: u64, to: u64, bytes: u64) {
    let bytes = read(media, from, bytes).await;
    media.write(to, vec![bytes]).await.0.expect("written");
}

/// Starts the drive, which refuses the medium; returns why.
fn refusal(lives: &mut Lives) -> String {
    let refused = lives.live(|_| async {});
    lives.cut(|| 0);
    refused.expect_err("the medium is damaged")
}

#[test]
fn a_segment_that_is_there_twice_is_refused() {
    let mut lives = start();
    fill(&mut lives, 20, LONG, false);
    lives.inspect(|media| async move {
        let (segments, found, free) = own(&media).await;
        assert!(found.len() > 1, "one is sealed");
        let (from, to) = (segments.at(found[0].number, 0), segments.at(free, 0));
        copy(&media, from, to, segments.segment_bytes).await;
    });
    let why = refusal(&mut lives);
    assert!(why.contains("have the same sequence"), "{why}");
}

/// The newest segment of a shard has a header from before its use, and would seem to be empty.
#[test]
fn a_header_that_is_older_than_what_follows_is_refused() {
    let mut lives = start();
    fill(&mut lives, 3, LONG, false);
    lives.inspect(|media| async move {
        let (segments, found, _) = own(&media).await;
        let newest = found.last().expect("it has one");
        assert!(newest.hint.is_some(), "long groups are announced");
        let header = SegmentHeader::encode(&segments.uuid, newest.sequence - 1, newest.shard);
        let mut sector = Buffer::zeroed(usize::try_from(SECTOR_BYTES).unwrap());
        sector[..64].copy_from_slice(header.as_bytes());
        media.write(segments.at(newest.number, 0), vec![sector]).await.0.expect("written");
    });
    let why = refusal(&mut lives);
    assert!(why.contains("its header is older than what follows"), "{why}");
}

/// Stops a drive, lets it store more values of this length, and puts the seal of the stop back.
fn stopped_and_continued(bytes: usize, keeps_hint: bool) -> String {
    let mut lives = start();
    fill(&mut lives, 3, 1_000, true);
    let (sealed, number) = lives.inspect(|media| async move {
        let (segments, found, _) = own(&media).await;
        let number = found.last().expect("it has one").number;
        let page = read(&media, segments.at(number, PAGE_BYTES), PAGE_BYTES).await;
        (page.to_vec(), number)
    });
    let lived = lives.live(move |core| async move {
        // A hint says how far all is durable before its group.
        for number in 5..7 {
            store(&core, key(number), &content(5, bytes)).await.expect("stored");
        }
    });
    assert_eq!(lived, Ok(()));
    lives.cut(|| 0);
    // The seal and the hint lie in two sectors of one page.
    let sector = usize::try_from(SECTOR_BYTES).unwrap();
    let length = if keeps_hint { sector } else { sealed.len() };
    assert_eq!(HINT_OFFSET, PAGE_BYTES + SECTOR_BYTES);
    lives.inspect(move |media| {
        let older = Buffer::from_slice(&sealed[..length]);
        async move {
            let segments = segments_of(&media).await;
            media.write(segments.at(number, PAGE_BYTES), vec![older]).await.0.expect("written");
        }
    });
    refusal(&mut lives)
}

#[test]
fn a_seal_that_is_older_than_the_hint_or_the_records_is_refused() {
    let why = stopped_and_continued(LONG, true);
    assert!(why.contains("its seal is older than its hint"), "{why}");
    let why = stopped_and_continued(1_000, false);
    assert!(why.contains("its seal is older than its records"), "{why}");
}

/// Returns the records of the shard's only segment, in order, and where the segment begins.
async fn records(media: &Media) -> (u64, Vec<(u64, Record)>) {
    let (segments, found, _) = own(media).await;
    assert_eq!(found.len(), 1);
    let mut walk = found[0].walk(media, &segments);
    let mut records = Vec::new();
    loop {
        match walk.next().await.expect("read") {
            Step::Record(offset, record) => records.push((offset, record)),
            Step::Checkpoint(..) => {}
            Step::End => return (segments.at(found[0].number, 0), records),
            step => panic!("{step:?}"),
        }
    }
}

/// Stores keys one after another, each in a group of its own, then puts the first sector of the
/// record `from` in place of that of the record `to`. Returns what is found of the last version of
/// the first key; the error says why the drive was refused.
fn moved_record(order: &[usize], bytes: usize, (from, to): (usize, usize)) -> Result<bool, String> {
    let mut lives = start();
    let stored = order.to_vec();
    let lived = lives.live(move |core| async move {
        for (version, number) in stored.into_iter().enumerate() {
            let value = content(version as u64, bytes);
            store(&core, key(number), &value).await.expect("stored");
        }
    });
    assert_eq!(lived, Ok(()));
    lives.cut(|| 0);
    lives.inspect(move |media| async move {
        let (segment, records) = records(&media).await;
        let places = [from, to].map(|record| segment + records[record].0);
        assert!(places.iter().all(|at| at.is_multiple_of(SECTOR_BYTES)), "{places:?}");
        copy(&media, places[0], places[1], SECTOR_BYTES).await;
    });
    let last = order.iter().rposition(|number| *number == order[0]).unwrap();
    let (first, newest) = (order[0], content(last as u64, bytes));
    lives.live(move |core| async move {
        match find(&core, key(first)).await {
            Ok(found) => {
                assert_eq!(found, Some(newest), "an older value");
                true
            }
            Err(_) => false,
        }
    })
}

/// A record says at which sector its group begins. So an earlier record of a key does not pass for
/// the later one whose place it has, whether its group fills whole sectors or not.
#[test]
fn a_record_at_the_place_of_another_hides_nothing() {
    let whole = usize::try_from(SECTOR_BYTES - footprint(0)).unwrap();
    for (order, bytes, places) in [
        // Right behind itself: it has the group of the record before.
        (&[0, 0, 1, 2][..], 100, (0, 1)),
        // Right behind another one, which fills its sector.
        (&[0, 1, 0, 2][..], whole, (0, 2)),
        (&[0, 1, 0, 2][..], 100, (0, 2)),
    ] {
        let found = moved_record(order, bytes, places);
        assert!(!matches!(found, Ok(true)), "{order:?}: nothing was damaged");
    }
}

/// Zeros at the end of a value are no sign of records that are gone.
#[test]
fn values_that_end_in_zeros_are_no_damage() {
    let mut lives = start();
    let value = |number: usize| [content(number as u64, 700), vec![0; 900 * number]].concat();
    let lived = lives.live(move |core| async move {
        for number in 0..8 {
            store(&core, key(number), &value(number)).await.expect("stored");
        }
    });
    assert_eq!(lived, Ok(()));
    lives.cut(|| 0);
    let found = lives.live(move |core| async move {
        for number in 0..8 {
            assert_eq!(find(&core, key(number)).await, Ok(Some(value(number))), "{number}");
        }
    });
    assert_eq!(found, Ok(()));
}

/// A medium that is formatted again has seals of its former drive behind no header.
#[test]
fn what_a_former_drive_has_sealed_is_no_damage() {
    let mut lives = start();
    fill(&mut lives, 20, LONG, true);
    lives.is_blank();
    for start in 0..3 {
        let found = lives.live(move |core| async move {
            assert_eq!(find(&core, key(9)).await, Ok(None));
            let first = find(&core, key(0)).await;
            store(&core, key(0), &content(7, 1_000)).await.expect("stored");
            stop(&core).await;
            first.map(|found| found.is_some())
        });
        assert_eq!(found, Ok(Ok(start > 0)), "start {start}");
        lives.cut(|| 1);
    }
}
