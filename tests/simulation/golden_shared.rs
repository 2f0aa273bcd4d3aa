//! The golden medium of a drive whose values share chunks, `version-2-shared.txt`: the lists of
//! their parts are those that the format says, and the medium is read and written further with the
//! option and without it.

use std::fs;
use std::path::Path;
use std::rc::Rc;

use csd_drive::drive::Core;
use csd_kvlog::check::check;
use csd_kvlog::format::{FEATURE_SHARED, SHARDS, VERSION};
use csd_kvlog::media::Media;
use csd_kvlog::parts::{Parts, Place};
use csd_kvlog::record::Content;
use csd_kvlog::recover::survey;
use csd_kvlog::walk::Step;
use csd_nvme::kv::Key;

use crate::golden::{golden_file, restore, text_of};
use crate::lives::{Lives, NSID, SMALL, find, segments_of, store};
use crate::shared_chunks::{CHUNK_BYTES, OPTIONS, pool_keys, settle};

const MEDIUM: &str = "version-2-shared.txt";
/// The chunks of each key's value, by their numbers, and the length of its end.
const VALUES: [(u8, &[u8], usize); 3] = [(1, &[1, 2], 30), (2, &[3, 1], 0), (3, &[4], 0)];

fn key(number: u8) -> Key {
    Key::new(&[number]).unwrap()
}

fn value(chunks: &[u8], end: usize) -> Vec<u8> {
    let mut value = vec![0; chunks.len() * CHUNK_BYTES];
    for (chunk, number) in value.chunks_exact_mut(CHUNK_BYTES).zip(chunks) {
        chunk[..16].fill(*number);
    }
    value.extend(std::iter::repeat_n(7, end));
    value
}

async fn life(core: Rc<Core>) {
    for (number, chunks, end) in VALUES {
        store(&core, key(number), &value(chunks, end)).await.expect("stored");
    }
    settle(&core).await;
    assert_eq!(pool_keys(&core), 1);
}

/// Returns the lists of parts on a medium.
async fn lists(media: Media) -> Vec<(Key, Parts)> {
    let segments = segments_of(&media).await;
    let mut lists = Vec::new();
    for found in survey(&media, &segments, SHARDS, 0).await.expect("whole") {
        let mut walk = found.walk(&media, &segments);
        loop {
            match walk.next().await.expect("read") {
                Step::Record(offset, record) if matches!(record.content, Content::Indirect(_)) => {
                    let list = walk.value(offset, &record).await.expect("read").expect("whole");
                    assert_eq!(record.key.0, NSID);
                    lists.push((record.key.1, Parts::parse(&list).expect("a list")));
                }
                Step::End => break,
                _ => {}
            }
        }
    }
    lists.sort_unstable_by_key(|(key, _)| *key);
    lists
}

/// Compares the lists with the values.
fn verify_lists(lives: &Lives) {
    let found = lives.inspect(lists);
    assert_eq!(found.len(), 2, "values that share");
    let mut common = Vec::new();
    for ((of, parts), (number, chunks, end)) in found.iter().zip(VALUES) {
        let whole = value(chunks, end);
        let length = u32::try_from(whole.len()).unwrap();
        assert_eq!((*of, parts.value_bytes), (key(number), length));
        assert_eq!(parts.value_checksum, crc32c::crc32c(&whole));
        for part in &parts.parts {
            if let Place::Chunk(chunk) = &part.place {
                let range = part.range.start as usize..part.range.end as usize;
                assert_eq!(whole[range], value(&[1], 0));
                common.push(*chunk);
            }
        }
    }
    assert!(common.len() == 2 && common[0] == common[1], "{common:?}");
}

async fn verify(core: &Core) {
    for (number, chunks, end) in VALUES {
        assert!(find(core, key(number)).await == Ok(Some(value(chunks, end))), "key {number}");
    }
}

/// Reads the medium with the option and without, and writes it further.
fn go_on(text: &str) {
    for shares in [true, false] {
        let mut lives = Lives::new(1, 1, SMALL);
        restore(&mut lives, text);
        let found = lives.inspect(|media| async move { check(&media).await.unwrap() });
        assert_eq!(found.damage, [""; 0]);
        let features = found.superblock.features_needed();
        assert_eq!(
            (found.superblock.version(), features & FEATURE_SHARED),
            (VERSION, FEATURE_SHARED)
        );
        verify_lists(&lives);
        if shares {
            lives.count_chunks(OPTIONS);
        }
        let lived = lives.live(move |core| async move {
            verify(&core).await;
            store(&core, key(4), &value(&[1, 5], 9)).await.expect("stored");
            core.kv.delete(NSID, key(1)).await.expect("deleted");
            settle(&core).await;
        });
        lived.unwrap();
        lives.cut_at_random();
        let lived = lives.live(move |core| async move {
            assert_eq!(find(&core, key(1)).await, Ok(None));
            let (_, chunks, end) = VALUES[1];
            assert!(find(&core, key(2)).await == Ok(Some(value(chunks, end))));
            assert!(find(&core, key(4)).await == Ok(Some(value(&[1, 5], 9))));
            core.kv.delete(NSID, key(2)).await.expect("deleted");
            core.kv.delete(NSID, key(4)).await.expect("deleted");
            settle(&core).await;
            // Only a drive that shares deletes what nothing has.
            assert_eq!(pool_keys(&core), u64::from(!shares));
        });
        lived.unwrap();
    }
}

#[test]
fn the_golden_medium_has_shared_chunks_and_is_written_further() {
    go_on(&golden_file(MEDIUM));
}

/// Also writes the file to the folder that `CSD_GOLDEN_SHARED` names.
#[test]
fn a_medium_with_shared_chunks_is_written_and_restored() {
    let mut lives = Lives::new(24, 1, SMALL);
    lives.count_chunks(OPTIONS);
    lives.live(life).unwrap();
    // The process is killed: everything that it has written stays.
    lives.cut(|| 0);
    let text = text_of(&lives);
    if let Some(folder) = std::env::var_os("CSD_GOLDEN_SHARED") {
        fs::write(Path::new(&folder).join(MEDIUM), &text).unwrap();
    }
    go_on(&text);
}
