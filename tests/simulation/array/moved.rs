//! A host reads an object that another one has moved to other drives, by the entry from before.

use std::time::Duration;

use csd_store::array::{DriveIndex, GUARDED};
use csd_store::catalogue::Entry;
use csd_store::error::NameError;
use csd_store::layout::Scheme;
use csd_store::object::{self, Arrange, Error, On, PutOptions};

use super::Lane;
use super::history::CHUNK_BYTES;
use super::host::read;
use super::pace::{ask, options_of, put_bytes};
use super::rebalance::{aligned, no_limits};
use crate::words::words;

const NAME: &str = "object";
/// Chunks of the object, of which two make a stripe with two pieces of parity.
const CHUNKS: u64 = 24;
/// Neighbours, so that some stripes have three pieces there; the other drives find the name.
const LOST: [usize; 3] = [1, 2, 3];

fn content() -> Vec<u8> {
    words(1 << 32, usize::try_from(CHUNKS * CHUNK_BYTES).unwrap())
}

/// Puts the object on four drives, of which it survives the loss of two.
fn put(lane: &Lane, on: On) -> Entry {
    ask(lane, 0, async move |array| {
        let options = PutOptions {
            on,
            arrange: Arrange::Spread,
            align: Some(aligned((0..4).map(DriveIndex::new).collect())),
            protect: Some(Scheme::new(2, 2).unwrap()),
            ..options_of(NAME)
        };
        put_bytes(&array, &options, content()).await
    })
}

fn read_by(lane: &Lane, entry: &Entry) -> (Vec<u8>, Result<(), Error>) {
    let entry = entry.clone();
    ask(lane, 1, async move |array| read(&array, entry).await)
}

#[test]
fn an_object_that_was_moved_and_cannot_be_read_was_not_removed() {
    for (seed, on) in [(0, On::Kv), (1, On::Block)] {
        let lane = Lane::new(seed, GUARDED);
        lane.start_drives();
        let former = put(&lane, on);
        let entry = former.clone();
        let moved = ask(&lane, 0, async move |array| {
            let drives = array.voting();
            object::rebalance(&array, &[entry], &drives, &no_limits()).await
        });
        assert_eq!(moved.moved.len(), 1, "{:?}", moved.failed);
        // Later than the former pieces are deleted.
        lane.world.run_for(Duration::from_secs(5));
        lane.part(1, &LOST);
        let (_, done) = read_by(&lane, &former);
        lane.join(1, &LOST);
        assert!(matches!(done, Err(Error::Name(NameError::Moved { .. }))), "{on:?}: {done:?}");
        let (bytes, done) = read_by(&lane, &former);
        done.expect("reads it where it is now");
        assert!(bytes == content(), "{on:?}: other bytes");
    }
}
