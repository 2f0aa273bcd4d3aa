//! Records of kinds that this program does not know, as a later version may write them: a start
//! refuses the medium in words that name the kind, and writes nothing; the check names it; a drive
//! that is salvaged serves the rest. A start does not read a record that a checkpoint lists: there
//! the check names the kind, and a read of its key fails.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use csd_kvlog::check::check;
use csd_kvlog::format::SHARDS;
use csd_kvlog::media::{FaultConfig, Faulty, Media};
use csd_kvlog::record::KIND_CHECKPOINT;
use csd_kvlog::recover::survey;
use csd_kvlog::walk::Step;
use csd_nvme::status::Status;
use csd_reactor::Buffer;

use crate::golden::{golden, restore, text_of};
use crate::lives::{Lives, SMALL, content, find, keys_of, segments_of, stop, store};

const SHARD: usize = 6;
const KEYS: usize = 5;
/// Number of the record that gets another kind.
const CHANGED: usize = 2;
/// Kinds of no version so far.
const LATER: [u8; 2] = [6, 255];

fn value(index: usize) -> Vec<u8> {
    content(index as u64, 100 + 300 * index)
}

/// Makes a medium on which a drive has stored [`KEYS`] keys, and was killed, or stopped.
fn filled(is_stopped: bool) -> Lives {
    let mut lives = Lives::new(1, 1, SMALL);
    lives
        .live(move |core| async move {
            for (index, key) in keys_of(SHARD).take(KEYS).enumerate() {
                store(&core, key, &value(index)).await.expect("stored");
            }
            if is_stopped {
                stop(&core).await;
            }
        })
        .unwrap();
    lives.cut(|| 0);
    lives
}

/// Gives a record another kind, with a checksum that holds; returns its segment and its offset.
async fn change(media: Media, kind: u8) -> (u32, u64) {
    let segments = segments_of(&media).await;
    for found in survey(&media, &segments, SHARDS, 0).await.expect("whole") {
        let (mut walk, mut number) = (found.walk(&media, &segments), 0);
        while let Step::Record(offset, record) = walk.next().await.expect("read") {
            if number == CHANGED {
                let mut header = record.encode(found.sequence);
                header.set_kind(kind);
                let header = Buffer::from_slice(header.signed(found.sequence).as_bytes());
                let at = segments.at(found.number, offset);
                media.write(at, vec![header]).await.0.expect("written");
                return (found.number, offset);
            }
            number += 1;
        }
    }
    panic!("no segment has so many records");
}

/// Returns the damage that the check finds.
fn damage(lives: &Lives) -> Vec<String> {
    lives.inspect(|media| async move { check(&media).await.unwrap().damage })
}

/// Lets the next lives open the medium read-only.
fn read_only(lives: Lives) -> Lives {
    let slot = Rc::new(RefCell::new(None));
    let place = Rc::clone(&slot);
    let lives = lives.on(|disk| {
        let faulty = Arc::new(Faulty::new(disk, 1));
        *place.borrow_mut() = Some(Arc::clone(&faulty));
        Media::Faulty(faulty)
    });
    let faulty = slot.take().expect("just made");
    faulty.set(FaultConfig { failed_syncs_ppm: 1_000_000, ..FaultConfig::default() });
    let synced = lives.inspect(move |_| {
        let faulty = Arc::clone(&faulty);
        async move { faulty.sync().await }
    });
    assert!(synced.is_err(), "the medium takes writes");
    lives
}

/// Changes a record's kind, and looks at the medium in every way; returns its salvaged drive.
fn refused(mut lives: Lives, kind: u8) -> Lives {
    let (segment, at) = lives.inspect(move |media| change(media, kind));
    let before = text_of(&lives);
    let why = lives.live(|_| async {}).expect_err("the medium was opened");
    lives.cut(|| 0);
    let words = format!(
        "segment {segment}: the record at {at} is of kind {kind}, which this program does not know"
    );
    assert!(why.contains(&words), "{why}");
    assert!(text_of(&lives) == before, "the refused medium was written");
    assert_eq!(damage(&lives), [format!("segment {segment}: unknown kind {kind} at {at}")]);
    let mut lives = read_only(lives);
    let passed = lives.live(|core| async move { core.shared.segments.damage() });
    assert_eq!(passed, Ok(vec![words]));
    lives.cut(|| 0);
    lives
}

#[test]
fn an_unknown_kind_is_refused_by_name_and_the_rest_can_be_salvaged() {
    for kind in LATER {
        let mut salvaged = refused(filled(false), kind);
        salvaged
            .live(|core| async move {
                for (index, key) in keys_of(SHARD).take(KEYS).enumerate() {
                    let expected = (index != CHANGED).then(|| value(index));
                    assert!(find(&core, key).await == Ok(expected), "key {index}");
                }
            })
            .unwrap();
    }
}

/// A medium of version 1 has no checkpoints: their kind is as unknown there as a later one.
#[test]
fn a_medium_of_version_1_knows_fewer_kinds() {
    for kind in [KIND_CHECKPOINT].into_iter().chain(LATER) {
        let mut lives = Lives::new(1, 1, SMALL);
        restore(&mut lives, &golden(1));
        refused(lives, kind);
    }
}

#[test]
fn an_unknown_kind_that_a_checkpoint_lists_is_found_by_the_check_and_by_reads() {
    let mut lives = filled(true);
    let (segment, at) = lives.inspect(|media| change(media, LATER[0]));
    let found = damage(&lives);
    let named = format!("segment {segment}: unknown kind {} at {at}", LATER[0]);
    assert!(found.contains(&named), "{found:?}");
    lives
        .live(|core| async move {
            for (index, key) in keys_of(SHARD).take(KEYS).enumerate() {
                let expected = match index {
                    CHANGED => Err(Status::UNRECOVERED_ERROR),
                    _ => Ok(Some(value(index))),
                };
                assert!(find(&core, key).await == expected, "key {index}");
            }
        })
        .unwrap();
}
