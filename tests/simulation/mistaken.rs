//! A medium that returns another record than the one written there: reading fails, by every way,
//! and never returns another key's value.

use csd_drive::drive::Core;
use csd_kvlog::record::{RECORDS_OFFSET, RecordHeader};
use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::Buffer;

use crate::lives::{Lives, NSID, SMALL, content, find, keys_of, store, together};

const VALUE_BYTES: usize = 3000;
const RECORD_BYTES: usize = RecordHeader::SIZE + VALUE_BYTES;

/// Returns the offset on the medium of a key's record among the first of a segment.
async fn place(core: &Core, key: Key) -> u64 {
    let segments = &core.shared.segments;
    for segment in 0..segments.count {
        let at = segments.at(segment, RECORDS_OFFSET);
        let (result, front) = core.shared.media().read(at, Buffer::zeroed(64 << 10)).await;
        result.expect("read");
        for offset in (0..front.len() - RECORD_BYTES).step_by(64) {
            let is_record = front[offset..].starts_with(b"CREC");
            if is_record && front[offset + 32..].starts_with(key.padded()) {
                return at + offset as u64;
            }
        }
    }
    panic!("there is no record of {key:?}");
}

#[test]
fn another_record_in_the_place_of_a_keys_is_not_its_value() {
    for seed in 0..4 {
        let cores = 1 + usize::try_from(seed % 2).unwrap();
        let lived = Lives::new(seed, cores, SMALL).live(|core| async move {
            // Of one shard, length and segment: only the key differs.
            let keys: Vec<Key> = keys_of(4).take(2).collect();
            let stores = keys.clone().into_iter().zip(0u64..).map(|(key, number)| {
                let core = std::rc::Rc::clone(&core);
                async move { store(&core, key, &content(number, VALUE_BYTES)).await }
            });
            together(stores).await.into_iter().for_each(|stored| stored.expect("stored"));
            let media = core.shared.media();
            let (one, other) = (place(&core, keys[0]).await, place(&core, keys[1]).await);
            let (result, record) = media.read(other, Buffer::zeroed(RECORD_BYTES)).await;
            result.expect("read");
            media.write(one, vec![record]).await.0.expect("written");
            let exists = core.kv.exist(NSID, keys[0]).await;
            let resumed = async {
                let value = core.kv.open(NSID, keys[0]).await?.expect("it exists");
                value.progress().await.map(drop)
            };
            let resumed = resumed.await;
            let unchecked = async {
                let value = core.kv.open(NSID, keys[0]).await?.expect("it exists");
                value.read_unchecked(0, 100).await.map(drop)
            };
            let (first, second) = (find(&core, keys[0]).await, find(&core, keys[1]).await);
            (exists, resumed, unchecked.await, first, second)
        });
        let (exists, resumed, unchecked, first, second) = lived.unwrap();
        assert_eq!(exists, Ok(true), "seed {seed}: the index alone knows");
        assert_eq!(resumed, Err(Status::UNRECOVERED_ERROR), "seed {seed}");
        assert_eq!(unchecked, Err(Status::UNRECOVERED_ERROR), "seed {seed}");
        assert_eq!(first, Err(Status::UNRECOVERED_ERROR), "seed {seed}");
        assert_eq!(second, Ok(Some(content(1, VALUE_BYTES))), "seed {seed}");
    }
}
