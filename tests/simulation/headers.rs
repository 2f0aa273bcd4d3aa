//! Segments whose header was not written, because the write failed: whatever was acknowledged is
//! found after a clean stop and after a kill, the check finds nothing, and media that an earlier
//! program left in that state are started.

use std::sync::Arc;

use csd_kvlog::check::check;
use csd_kvlog::format::SHARDS;
use csd_kvlog::media::{FaultConfig, Faulty, Media};
use csd_kvlog::record::{PAGE_BYTES, RECORDS_OFFSET};
use csd_kvlog::recover::survey;
use csd_kvlog::segment_head::Seal;
use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::Buffer;

use crate::lives::{Lives, SMALL, content, find, keys_of, segments_of, stop, store};

const SHARD: usize = 3;

fn key(number: usize) -> Key {
    keys_of(SHARD).nth(number).unwrap()
}

/// Returns what the check finds.
fn damage(lives: &Lives) -> Vec<String> {
    lives.inspect(|media| async move { check(&media).await.expect("checked").damage })
}

/// Starts the drive twice, stopping cleanly or not, and finds the first keys each time. Other
/// shards take segments meanwhile.
fn finds(lives: &mut Lives, keys: usize, stops: bool) {
    for start in 0..3 {
        let found = lives.live(move |core| async move {
            for number in 0..keys {
                let value = content(number as u64, 200_000);
                assert!(find(&core, key(number)).await == Ok(Some(value)), "key {number}");
            }
            for shard in [1, 2] {
                let key = keys_of(shard).nth(start).unwrap();
                store(&core, key, &content(9, 200_000)).await.expect("stored");
            }
            if stops {
                stop(&core).await;
            }
        });
        assert_eq!(found, Ok(()), "start {start}");
        lives.cut(|| u64::from(stops));
        assert_eq!(damage(lives), [""; 0], "after start {start}");
    }
}

#[test]
fn a_header_that_fails_once_keeps_no_drive_from_its_next_start() {
    for (failed, torn) in [(1_000_000, 0), (0, 1_000_000)] {
        for stops in [true, false] {
            for seed in 0..8 {
                let mut faulty = None;
                let mut lives = Lives::new(seed, 1, SMALL).on(|media| {
                    let medium = Arc::new(Faulty::new(media, seed));
                    faulty = Some(Arc::clone(&medium));
                    Media::Faulty(medium)
                });
                let faulty = faulty.unwrap();
                let failing = FaultConfig {
                    failed_writes_ppm: failed,
                    torn_writes_ppm: torn,
                    ..FaultConfig::default()
                };
                let lived = lives.live(move |core| async move {
                    faulty.set(failing);
                    let value = content(0, 200_000);
                    let refused = store(&core, key(0), &value).await;
                    assert_eq!(refused, Err(Status::WRITE_FAULT));
                    faulty.set(FaultConfig::default());
                    store(&core, key(0), &value).await.expect("stored");
                    if stops {
                        stop(&core).await;
                    }
                });
                assert_eq!(lived, Ok(()));
                lives.cut(|| u64::from(stops));
                let report = lives.inspect(|media| async move { check(&media).await.unwrap() });
                assert_eq!(report.damage, [""; 0]);
                assert_eq!(report.shards[SHARD].segments, 2, "an empty one, and that of the value");
                finds(&mut lives, 1, stops);
            }
        }
    }
}

/// Makes the medium of an earlier program: its shard was stopped with one segment more than have a
/// header. The seal of that segment is on the medium, if it `is_sealed`.
async fn leave_headless(media: Media, is_sealed: bool) {
    let segments = segments_of(&media).await;
    let found = survey(&media, &segments, SHARDS, 0).await.expect("whole");
    let newest = found.iter().rfind(|found| found.shard as usize == SHARD).expect("has one");
    let seal = newest.seal.expect("stopped");
    let counted = Seal { stopped: seal.stopped.map(|owned| owned + 1), ..seal };
    let empty = Seal { valid_bytes: RECORDS_OFFSET, ..Seal::default() };
    // The next one that a shard takes.
    let free = (0..segments.count).find(|at| found.iter().all(|found| found.number != *at));
    let places = [(newest.number, newest.sequence, counted), (free.unwrap(), 1, empty)];
    for (number, sequence, seal) in &places[..1 + usize::from(is_sealed)] {
        let mut page = Buffer::zeroed(usize::try_from(PAGE_BYTES).unwrap());
        page[..64].copy_from_slice(seal.encode(*sequence).as_bytes());
        media.write(segments.at(*number, PAGE_BYTES), vec![page]).await.0.expect("written");
    }
}

#[test]
fn a_medium_that_such_a_failure_has_left_is_started() {
    for is_sealed in [true, false] {
        let mut lives = Lives::new(1, 2, SMALL);
        let lived = lives.live(|core| async move {
            for number in 0..4 {
                let value = content(number as u64, 200_000);
                store(&core, key(number), &value).await.expect("stored");
            }
            stop(&core).await;
        });
        assert_eq!(lived, Ok(()));
        lives.cut(|| 1);
        lives.inspect(move |media| leave_headless(media, is_sealed));
        if is_sealed {
            assert_eq!(damage(&lives), [""; 0]);
            finds(&mut lives, 4, true);
        } else {
            assert_eq!(damage(&lives).len(), 1);
            let refused = lives.live(|_| async {}).unwrap_err();
            assert!(refused.contains("shard 3: 2 segments where there were 3"), "{refused}");
        }
    }
}
