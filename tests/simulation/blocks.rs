//! Commands of the workload besides Read and Write: zeros, copies, fused pairs. In the model a
//! sector of zeros equals one that was never written.

use std::future::Future;

use csd_initiator::{Block, Error};
use csd_nvme::capsule::Sqe;
use csd_nvme::nvm::{self, Extent};
use csd_nvme::status::Status;
use csd_reactor::{Buffer, join};

use crate::model::State;
use crate::random_u64;
use crate::workload::{SECTOR_BYTES, Shared, content, fail, refused, sectors};

/// Runs one of these commands on block `number`; only this worker changes the blocks `others`.
pub async fn work(
    block: &Block,
    number: u64,
    others: std::ops::Range<u64>,
    dirty: &mut Vec<u64>,
    known: &Shared,
) -> Result<(), ()> {
    match random_u64() % 4 {
        0 => zero(block, number, known).await?,
        1 | 2 => fused(block, number, known).await?,
        _ => copy(block, number, others, known).await?,
    }
    dirty.push(number);
    Ok(())
}

fn block_bytes(block: &Block) -> u64 {
    u64::from(block.block_bytes())
}

pub async fn submit(block: &Block, sqe: Sqe, payload: &[u8]) -> Result<(), Error> {
    let payload = match payload {
        [] => Vec::new(),
        bytes => vec![Buffer::from_slice(bytes)],
    };
    block.controller().submit(sqe, payload, 0).await.map(drop)
}

/// Records the states that a change may lead to, runs it, and records its success.
async fn change(
    block: &Block,
    number: u64,
    states: &[State],
    known: &Shared,
    run: impl Future<Output = Result<(), Error>>,
) -> Result<(), ()> {
    let pairs = || sectors(number, block_bytes(block)).zip(states);
    for (sector, state) in pairs() {
        known.borrow_mut().sectors.asked(sector, state.clone());
    }
    run.await.map_err(|error| refused(known, &error))?;
    for (sector, state) in pairs() {
        known.borrow_mut().sectors.acknowledged(sector, state.clone());
    }
    Ok(())
}

async fn zero(block: &Block, number: u64, known: &Shared) -> Result<(), ()> {
    let extent = Extent { slba: number, blocks: 1 };
    let (sqe, payload) = match random_u64() % 3 {
        0 => nvm::deallocate(block.nsid(), &[extent]),
        kind => (nvm::write_zeroes(block.nsid(), extent, kind == 1), Vec::new()),
    };
    let count = sectors(number, block_bytes(block)).count();
    let states = vec![None; count];
    change(block, number, &states, known, submit(block, sqe, &payload)).await
}

fn current(number: u64, block: &Block, known: &Shared) -> Vec<State> {
    let known = known.borrow();
    sectors(number, block_bytes(block)).map(|sector| known.sectors.current(sector)).collect()
}

async fn copy(
    block: &Block,
    number: u64,
    others: std::ops::Range<u64>,
    known: &Shared,
) -> Result<(), ()> {
    let from = others.start + random_u64() % (others.end - others.start);
    let is_settled = |sector| known.borrow().sectors.is_settled(sector);
    if !sectors(from, block_bytes(block)).all(is_settled) {
        // A change of it failed, and may have been done.
        return read(block, from, known).await;
    }
    let source = Extent { slba: from, blocks: 1 };
    let (sqe, payload) = nvm::copy(block.nsid(), &[source], number);
    let states = current(from, block, known);
    change(block, number, &states, known, submit(block, sqe, &payload)).await
}

/// Returns the two halves of a fused Compare and Write.
pub fn fused_pair(nsid: u32, extent: Extent) -> (Sqe, Sqe) {
    let (mut first, mut second) = (nvm::compare(nsid, extent), nvm::write(nsid, extent, false));
    first.set_flags(first.flags() | 1);
    second.set_flags(second.flags() | 2);
    (first, second)
}

/// Runs a fused pair that compares with the current data or, at times, with other data.
async fn fused(block: &Block, number: u64, known: &Shared) -> Result<(), ()> {
    let extent = Extent { slba: number, blocks: 1 };
    let (first, second) = fused_pair(block.nsid(), extent);
    let sector = |state: &State| state.clone().unwrap_or_else(|| vec![0; SECTOR_BYTES]);
    let mut old: Vec<u8> = current(number, block, known).iter().flat_map(sector).collect();
    let new = content(known, old.len());
    if random_u64().is_multiple_of(4) {
        let last = old.len() - 1;
        old[last] ^= 1;
        let (compared, written) =
            join(submit(block, first, &old), submit(block, second, &new)).await;
        if compared.is_ok() || written.is_ok() {
            fail(known, format!("block {number}: a pair wrote that must not"));
        }
        let statuses = [compared, written].map(|end| end.err().and_then(|error| error.status()));
        return match statuses {
            [Some(Status::COMPARE_FAILURE), Some(Status::ABORTED_FAILED_FUSED)] => Ok(()),
            // No status means that the drive is gone.
            [_, None] | [None, _] => Err(()),
            other => {
                let text = format!("block {number}: a pair that must not write: {other:?}");
                known.borrow_mut().refused.get_or_insert(text);
                Err(())
            }
        };
    }
    let states: Vec<State> = new.chunks(SECTOR_BYTES).map(|part| Some(part.to_vec())).collect();
    let pair = async {
        let (compared, written) =
            join(submit(block, first, &old), submit(block, second, &new)).await;
        compared.and(written)
    };
    change(block, number, &states, known, pair).await
}

/// Reads a block. Of a write that failed with a status any part may be there.
pub async fn read(block: &Block, number: u64, known: &Shared) -> Result<(), ()> {
    let block_bytes = u64::from(block.block_bytes());
    let length = usize::try_from(block_bytes).unwrap();
    let data = block.read(number * block_bytes, length).await;
    let data = data.map_err(|error| refused(known, &error))?;
    for (sector, found) in sectors(number, block_bytes).zip(data.chunks(SECTOR_BYTES)) {
        let state = Some(found.to_vec()).filter(|bytes| bytes.iter().any(|byte| *byte != 0));
        let is_right = {
            let mut known = known.borrow_mut();
            let expected = known.sectors.current(sector).unwrap_or_else(|| vec![0; SECTOR_BYTES]);
            let is_part = known.goes_on && known.sectors.reconnected(sector, state).is_ok();
            is_part || expected == found
        };
        if !is_right {
            fail(known, format!("sector {sector}: a running drive returned another content"));
        }
    }
    Ok(())
}
