//! Inputs of an execution of a drive: the chunks of a unit as sources, and their digests.
//!
//! Performs no I/O.

use csd_nvme::vendor::execute::{Digests, Source, SourceData};

use super::context::StepContext;
use super::lines::Cut;
use crate::drives::{add_sums, digests, some, sources_of};
use crate::queue::Taken;

/// Returns the sources of an execution over a chunk, and their digests if they are known: a stream
/// for each object.
pub(super) fn sources(
    context: &StepContext,
    block_bytes: u32,
    taken: &Taken,
    cut: &Cut,
) -> (Vec<Source>, Option<Digests>) {
    let task = context.task();
    if let Some(group) = task.group(taken.run.first) {
        let entry = &task.inputs[group.input];
        let (mut sources, mut digests) = (Vec::new(), digests(std::slice::from_ref(entry)));
        for run in group.runs(entry) {
            let read = sources_of(entry, block_bytes, taken.member, &run);
            sources.extend(read.into_iter().map(|data| data.on(0)));
            add_sums(&mut digests, 0, entry, &run);
        }
        return (sources, some(digests));
    }
    let (mut sources, mut digests) = (Vec::new(), digests(&task.inputs));
    let length = task.layout.chunk_len(taken.run.first);
    for (stream, entry) in (0u8..).zip(&task.inputs) {
        if cut.skip < length {
            let read = sources_of(entry, block_bytes, taken.member, &taken.run);
            let read = read.into_iter().map(|data| behind(data, cut.skip));
            sources.extend(read.map(|data| data.on(stream)));
            add_sums(&mut digests, stream, entry, &taken.run);
        }
    }
    if let Some(bytes) = u32::try_from(cut.handed.len()).ok().filter(|bytes| *bytes > 0) {
        sources.push(SourceData::Inline { bytes }.on(0));
    }
    (sources, some(digests))
}

/// Returns a chunk without its first bytes. Blocks still begin with the chunk, because
/// its digest does.
fn behind(data: SourceData, skip: u32) -> SourceData {
    match data {
        SourceData::KvChunks { nsid, prefix, first, .. } if skip > 0 => {
            SourceData::KvTail { nsid, prefix, number: first, skip }
        }
        SourceData::Blocks { nsid, slba, bytes, .. } => {
            SourceData::Blocks { nsid, slba, skip, bytes: bytes - skip }
        }
        data => data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_without_its_first_bytes_is_a_tail_or_blocks_that_are_skipped() {
        let prefix = [1; 12];
        let kv = SourceData::KvChunks { nsid: 3, prefix, first: 7, count: 1, stride: 2 };
        assert_eq!(behind(kv, 0), kv);
        assert_eq!(behind(kv, 9), SourceData::KvTail { nsid: 3, prefix, number: 7, skip: 9 });
        let blocks = |skip, bytes| SourceData::Blocks { nsid: 1, slba: 8, skip, bytes };
        assert_eq!(behind(blocks(0, 1 << 20), 0), blocks(0, 1 << 20));
        assert_eq!(behind(blocks(0, 1 << 20), 8197), blocks(8197, (1 << 20) - 8197));
    }
}
