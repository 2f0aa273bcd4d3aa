//! Hosts that make work long by its number: each list or record is short, and there are many. A
//! pass of the scrub ends all the same, and no core works long between two yields.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use csd_initiator::Kv;
use csd_nvme::vendor::location::LocationKind;
use csd_nvme::vendor::pages::{List, Piece, list_key};
use csd_nvme::vendor::{NSID_BLOCK, NSID_OBJECTS};
use csd_reactor::sleep;

use crate::LIMIT;
use crate::lives::{Lives, keys_of, store as store_in, together};
use crate::longest_poll::{Lane, MEDIUM_BYTES, WORK_MAX, store};

const PAGE_BYTES: u32 = 1 << 20;
/// Bytes that each list covers: most of the blocks.
const COVERED: u64 = 64 << 20;
const LISTS: u32 = 40;
/// Most bytes of the block namespace, and of the values that a pass reads.
const PASS_BYTES: u64 = 2 * (MEDIUM_BYTES / 100 * 4) + (1 << 20);

/// Returns a list over the same blocks, of which the last page is damaged or not.
fn list(is_damaged: bool) -> Vec<u8> {
    let zeros = crc32c::crc32c(&vec![0; PAGE_BYTES as usize]);
    let pieces = (0..COVERED / (8 << 20)).map(|at| Piece { start: at << 23, bytes: 8 << 20 });
    let pieces: Vec<Piece> = pieces.collect();
    let mut sums = vec![zeros; usize::try_from(COVERED / u64::from(PAGE_BYTES)).unwrap()];
    *sums.last_mut().unwrap() ^= u32::from(is_damaged);
    let (kind, nsid) = (LocationKind::BLOCKS, NSID_BLOCK);
    List { kind, nsid, page_bytes: PAGE_BYTES, object: [7; 12], pieces, sums }.encode()
}

/// Each list is bounded, and a pass of all of them would take as long as there are lists.
#[test]
fn many_page_lists_of_the_same_blocks_make_no_pass_endless() {
    let lane = Lane::new(1 << 30);
    lane.step("lists of the same blocks", |controller| async move {
        let kv = Kv::open(&controller, NSID_OBJECTS).unwrap();
        for number in 0..LISTS {
            let list = list(number + 1 == LISTS);
            store(&kv, list_key(&[7; 12], number).as_bytes(), &list, 0).await;
        }
    });
    let (before, _) = lane.scrub();
    let span = Duration::from_secs(20);
    lane.world.run_for(span);
    // There is a second between two passes.
    let most = (span.as_secs() + 1) * PASS_BYTES;
    let read = lane.scrub().0 - before;
    assert!(read <= most, "{read} bytes in {span:?}");
    // Whatever lies before it, every list is compared in some pass.
    let met = lane.world.run_until(|_| lane.scrub().1 > 0, Duration::from_secs(2_000));
    met.expect("the list that differs is met");
}

/// Short records that many tasks store at once: one group commit copies them.
#[test]
fn a_group_of_short_records_is_copied_in_short_turns() {
    // Its segments hold more records than one turn may copy.
    let mut lives = Lives::new(3, 1, 1 << 30);
    let is_started = Rc::new(Cell::new(false));
    let started = Rc::clone(&is_started);
    let stored = lives.begin(move |core| async move {
        started.set(true);
        sleep(Duration::from_secs(1)).await;
        let stores = keys_of(3).take(960).map(|key| {
            let core = Rc::clone(&core);
            async move { store_in(&core, key, &[7; 8_000]).await.expect("stored") }
        });
        together(stores.collect::<Vec<_>>()).await;
    });
    lives.world.run_until(|_| is_started.get(), LIMIT).expect("it starts");
    // Formatting and starting serve no host yet.
    let _started = lives.longest_poll();
    assert_eq!(lives.end(&stored), Ok(()));
    let work = lives.longest_poll();
    println!("longest poll, a group of short records: {work} units");
    assert!(work <= WORK_MAX, "{work} units of work between two yields");
}
