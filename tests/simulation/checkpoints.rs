//! Checkpoints and short groups, in numbers: bytes of log for each short value, and bytes that
//! recovery reads. All are counted by the drive or its simulated disk, so they repeat. Lanes with
//! power cuts count here those that fall into the writing of a checkpoint.

use std::rc::Rc;

use csd_drive::drive::Core;
use csd_kvlog::format::SHARDS;
use csd_kvlog::media::{Media, Volatile};
use csd_kvlog::record::{Content, KIND_CHECKPOINT, KIND_FINAL_CHECKPOINT, RecordHeader};
use csd_kvlog::recover::survey;
use csd_kvlog::walk::Step;
use csd_nvme::kv::Key;

use crate::lives::{Lives, SMALL, content, find, segments_of, store, together};

/// Concurrent Stores.
const DEPTH: u64 = 64;

/// Returns true for each kind of checkpoint, among the records and final, of which the disk has one
/// that is not durable: a power cut now falls into its writing.
pub fn unfinished(disk: &Volatile) -> [bool; 2] {
    let mut pending = Vec::new();
    disk.each_pending(|offset, bytes| {
        let places = (offset..).step_by(RecordHeader::SIZE);
        for (at, place) in places.zip(bytes.chunks(RecordHeader::SIZE)) {
            // Values hold no such header: its checksum is right.
            let header = RecordHeader::parse(place);
            let header = header.and_then(|of| RecordHeader::checked(place, of.sequence()));
            pending.extend(header.map(|header| (at, header)));
        }
    });
    let mut found = [false; 2];
    for (at, header) in pending {
        let mut durable = [0; RecordHeader::SIZE];
        disk.at_rest(|memory| memory.read(at, &mut durable));
        // A group writes its first page again, perhaps with a checkpoint that is durable.
        let is_new = durable[..] != *header.as_bytes();
        found[0] |= is_new && header.kind() == KIND_CHECKPOINT;
        found[1] |= is_new && header.kind() == KIND_FINAL_CHECKPOINT;
    }
    found
}

fn key(number: u64) -> Key {
    let mut bytes = [7; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    Key::new(&bytes).unwrap()
}

/// Stores `count` values of this length, as many at a time as fit a deep queue of short ones.
async fn fill(core: Rc<Core>, count: u64, bytes: usize) {
    let depth = if bytes > 100_000 { 8 } else { DEPTH };
    let tasks = (0..depth).map(|task| {
        let core = Rc::clone(&core);
        async move {
            for number in (task..count).step_by(usize::try_from(depth).unwrap()) {
                store(&core, key(number), &content(number, bytes)).await.expect("stored");
            }
        }
    });
    together(tasks).await;
}

#[test]
fn short_values_share_pages() {
    const COUNT: u64 = 20_000;
    let mut lives = Lives::new(1, 1, SMALL);
    let written = lives.live(|core| async move {
        fill(Rc::clone(&core), COUNT, 16).await;
        core.shared.segments.written_bytes()
    });
    let each = written.unwrap() / COUNT;
    println!("16-byte values, {DEPTH} at a time: {each} bytes of log each");
    assert!(each <= 256, "{each} bytes of log for each value of 16 bytes");
}

/// Walks every record of every segment, as a start without checkpoints and hints does.
async fn walk_all(media: Media) -> u64 {
    let segments = segments_of(&media).await;
    let mut records = 0;
    for mut found in survey(&media, &segments, SHARDS, 0).await.expect("whole") {
        found.hint = None;
        let mut walk = found.walk(&media, &segments);
        loop {
            match walk.next().await.expect("read") {
                Step::Record(..) => records += 1,
                Step::Checkpoint(_, _, list) => assert!(list.is_some(), "a whole checkpoint"),
                Step::End => break,
                other => panic!("{other:?}"),
            }
        }
    }
    records
}

/// Fills a drive, kills it, and returns the bytes that a start reads and those of a full walk.
fn recovered(drive_bytes: u64, bytes: usize, percent: u64) -> (u64, u64) {
    let mut lives = Lives::new(1, 1, drive_bytes);
    let count = lives.live(move |core| async move {
        let segments = &core.shared.segments;
        let space = segments.space(Content::Value(u32::try_from(bytes).unwrap()));
        let count = (segments.capacity_bytes() * percent / 100 / space).max(20);
        fill(Rc::clone(&core), count, bytes).await;
        count
    });
    let count = count.unwrap();
    // The process is killed: everything that it has written stays.
    lives.cut(|| 0);
    let before = lives.disk.read_bytes();
    let walked = lives.inspect(walk_all);
    assert!(walked >= count, "{walked} records of {count}");
    let full = lives.disk.read_bytes() - before;
    let before = lives.disk.read_bytes();
    let disk = std::sync::Arc::clone(&lives.disk);
    let read = lives.live(move |core| async move {
        let read = disk.read_bytes() - before;
        assert_eq!(core.shared.segments.damaged_checkpoints(), [""; 0]);
        for number in (0..count).step_by(1 + usize::try_from(count / 500).unwrap()) {
            assert!(find(&core, key(number)).await == Ok(Some(content(number, bytes))));
        }
        read
    });
    (read.unwrap(), full)
}

#[test]
fn a_start_after_a_kill_reads_a_quarter_of_a_full_walk_at_most() {
    for (drive_bytes, bytes) in [(SMALL, 100), (1 << 30, 1 << 20)] {
        for percent in [1, 30, 85] {
            let (read, full) = recovered(drive_bytes, bytes, percent);
            let share = read * 100 / full;
            println!("{bytes} bytes, {percent} % full: {read} bytes read of {full}, {share} %");
            assert!(read * 4 <= full, "{bytes} bytes, {percent} % full: {read} of {full}");
        }
    }
}
