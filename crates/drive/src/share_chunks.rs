//! The sharing of chunks: a value with chunks that others have, too, becomes a list of its parts.

use std::collections::BTreeMap;
use std::rc::Rc;

use csd_kvlog::Kv;
use csd_kvlog::parts::{encode, list_bytes};
use csd_kvlog::record::{EntryKey, footprint};
use csd_kvlog::sharing::Conversion;
use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, Job, Progress, compute, spawn};

use crate::dedup::Shared;
use crate::dedup::job::{ChunkDigest, cost_ns};

/// Chunks that are put into the pool at once.
const TOGETHER: usize = 64;
/// Divisor of the smallest share of a record that sharing must save.
const WORTH_SHARE: u64 = 16;
/// Bytes that a step hashes.
const STEP_BYTES: usize = 64 << 10;

/// Lets a value share chunks, if that is worth it. Returns the bytes of the value; 0 if it shares
/// none.
///
/// # Errors
/// The status of a medium's failure. The value is as it was.
pub(crate) async fn share(
    kv: &Rc<Kv>,
    shared: &Shared,
    entry: EntryKey,
    chunk_bytes: usize,
) -> Result<u64, Status> {
    let conversion = Rc::new(Conversion::begin(&shared.sharing));
    let Some((version, value)) = kv.version(entry).await? else { return Ok(0) };
    let job = Digests { value, chunk_bytes, digests: Vec::new() };
    let hashed = compute(Class::Service, job).await.map_err(|_| Status::INTERNAL_ERROR)?;
    let (value, digests) = hashed;
    let is_often = |it: &&ChunkDigest| shared.holders.is_often(it.in_namespace(entry.0));
    let often = digests.iter().filter(is_often).count();
    let own_bytes = value.len() - often * chunk_bytes;
    if !is_worth_it(version.at.content.footprint(), digests.len(), own_bytes) {
        return Ok(0);
    }
    // Each chunk once, however often the value has it.
    let mut pooled: BTreeMap<ChunkDigest, bool> = BTreeMap::new();
    let wanted = digests.iter().zip(value.chunks(chunk_bytes));
    let wanted: BTreeMap<&ChunkDigest, &[u8]> = wanted.filter(|(it, _)| is_often(it)).collect();
    let wanted: Vec<_> = wanted.into_iter().collect();
    for some in wanted.chunks(TOGETHER) {
        let put = |(digest, chunk): &(&ChunkDigest, &[u8])| {
            let (kv, conversion, digest) = (Rc::clone(kv), Rc::clone(&conversion), **digest);
            let chunk = (key_of(&digest), Buffer::from_slice(chunk));
            let put = async move { kv.share(&conversion, entry.0, chunk).await };
            (digest, spawn(Class::Service, put))
        };
        let puts: Vec<_> = some.iter().map(put).collect();
        let mut failed = None;
        for (digest, put) in puts {
            match put.await {
                Ok(is_there) => drop(pooled.insert(digest, is_there)),
                Err(status) => failed = Some(status),
            }
        }
        if let Some(status) = failed {
            return Err(status);
        }
    }
    let is_shared = |digest: &ChunkDigest| pooled.get(digest) == Some(&true);
    let list = list_of(&value, &digests, chunk_bytes, is_shared);
    match kv.put_list(&conversion, entry, version, vec![list]).await {
        Ok(()) => Ok(value.len() as u64),
        // It stays as it is until there is room.
        Err(Status::CAPACITY_EXCEEDED) => Ok(0),
        Err(status) => Err(status),
    }
}

fn key_of(digest: &ChunkDigest) -> Key {
    Key::new(&digest.0).expect("a key has up to 16 bytes")
}

/// Returns true if sharing makes a record of so many bytes so much shorter that it pays for being
/// written again, with that many chunks and bytes that are not shared.
fn is_worth_it(record_bytes: u64, chunks: usize, own_bytes: usize) -> bool {
    let after = footprint(list_bytes(chunks + 1, own_bytes) as u64);
    after + record_bytes / WORTH_SHARE <= record_bytes
}

/// Returns the list of a value's parts, with the bytes that are not shared.
fn list_of(
    value: &[u8],
    digests: &[ChunkDigest],
    chunk_bytes: usize,
    is_shared: impl Fn(&ChunkDigest) -> bool,
) -> Buffer {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("a value has at most 16 MiB");
    let (mut parts, mut here): (Vec<(Option<Key>, u32)>, Vec<u8>) = (Vec::new(), Vec::new());
    for (number, chunk) in value.chunks(chunk_bytes).enumerate() {
        // The last one may be short, and has no digest then.
        let shared = digests.get(number).filter(|digest| is_shared(digest));
        match (shared, parts.last_mut()) {
            (Some(digest), _) => parts.push((Some(key_of(digest)), length(chunk))),
            (None, Some((None, bytes))) => *bytes += length(chunk),
            (None, _) => parts.push((None, length(chunk))),
        }
        if shared.is_none() {
            here.extend_from_slice(chunk);
        }
    }
    let mut list = encode(length(value), crc32c::crc32c(value), &parts);
    list.extend_from_slice(&here);
    Buffer::from_slice(&list)
}

/// Hashes the whole chunks of a value on the compute thread, in steps.
struct Digests {
    value: Buffer,
    chunk_bytes: usize,
    digests: Vec<ChunkDigest>,
}

impl Job for Digests {
    type Output = (Buffer, Vec<ChunkDigest>);

    fn step(&mut self) -> Progress<Self::Output> {
        let done = self.digests.len() * self.chunk_bytes;
        let chunks = self.value[done..].chunks_exact(self.chunk_bytes);
        let chunks = chunks.take(STEP_BYTES / self.chunk_bytes);
        let before = self.digests.len();
        self.digests.extend(chunks.map(|chunk| ChunkDigest::of(std::iter::once(chunk))));
        let hashed = (self.digests.len() - before) * self.chunk_bytes;
        let cost_ns = cost_ns(hashed as u64);
        match self.value.len() - done - hashed >= self.chunk_bytes {
            true => Progress::More { cost_ns },
            false => {
                let (value, digests) =
                    (std::mem::take(&mut self.value), std::mem::take(&mut self.digests));
                Progress::Done { cost_ns, output: (value, digests) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use csd_kvlog::parts::{Parts, Place};

    use super::*;

    const CHUNK: usize = 4096;

    #[test]
    fn neighbours_that_are_not_shared_are_one_part() {
        let value: Vec<u8> =
            (0..4 * CHUNK + 5).map(|at| u8::try_from(at / CHUNK).unwrap()).collect();
        let digests: Vec<ChunkDigest> = value
            .chunks_exact(CHUNK)
            .map(|chunk| ChunkDigest::of(std::iter::once(chunk)))
            .collect();
        let list = list_of(&value, &digests, CHUNK, |digest| *digest == digests[2]);
        let parts = Parts::parse(&list).unwrap();
        assert_eq!(parts.value_bytes as usize, value.len());
        let lengths: Vec<usize> = parts.parts.iter().map(|part| part.range.len()).collect();
        assert_eq!(lengths, [2 * CHUNK, CHUNK, CHUNK + 5]);
        assert_eq!(parts.parts[1].place, Place::Chunk(key_of(&digests[2])));
        let Place::Here(place) = &parts.parts[2].place else { panic!("it is not shared") };
        assert_eq!(list[place.clone()], value[3 * CHUNK..]);
    }

    #[test]
    fn little_is_not_worth_it() {
        let of_value = |bytes: usize| footprint(bytes as u64);
        assert!(!is_worth_it(of_value(100), 0, 100));
        assert!(!is_worth_it(of_value(64 * CHUNK), 64, 63 * CHUNK));
        assert!(is_worth_it(of_value(64 * CHUNK), 64, 56 * CHUNK));
        assert!(is_worth_it(of_value(CHUNK), 1, 0));
        // A list whose value would not share more.
        assert!(!is_worth_it(of_value(list_bytes(16, 8 * CHUNK)), 16, 8 * CHUNK));
    }
}
