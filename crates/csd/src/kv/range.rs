//! `csd kv range`: the keys between two bounds, read by the drive's program `range`, or by the same
//! program on this host.
//!
//! Invariant: both sides give the program entries of ascending keys, of a namespace whose order is
//! known, so that both give the same answer or none.

use csd_client::{Address, Error, Key, Session, Status};
use csd_initiator::{Controller, Memory, NamespaceKind, Options};
use csd_kernels::kernel::{Kernel, Wanted};
use csd_kernels::key_range::{KERNEL, ListKey, PROGRAM_ID, Parameters};
use csd_kernels::program::{Execution, Inputs};
use csd_nvme::compute::Controls;
use csd_nvme::kv::{KEY_BYTES_MAX, KeyList};
use csd_nvme::vendor::NSID_MEMORY;
use csd_nvme::vendor::execute::{self, Output, SourceData};
use csd_run::MemoryLease;
use csd_store::array::Drive;
use serde_json::{Value, json};

use super::{address, key, with_session};
use crate::cli::kv::{Range, Side};
use crate::context::Context;
use crate::report::{Failure, Report};
use crate::runtime::runtime;
use crate::units::counted;

/// Bytes of one List on the host.
const PAGE_BYTES: u32 = 64 << 10;
/// Number of ascending keys after which a drive's order is taken for that of keys, and the host
/// leaves out those below the range. Fewer than one in 2^64 other orders begin so by chance.
const SEEN_MIN: usize = 64;
/// Most bytes of the drive's memory that one execution writes.
const AREA_BYTES_MAX: u64 = 8 << 20;
/// Length of the number of bytes written, which precedes them.
const COUNT_BYTES: u64 = 8;
/// Length of the longest entry, bytes.
const ENTRY_BYTES_MAX: u64 = 20;

/// The bounds, and the form of the answer.
#[derive(Clone, Copy)]
struct Asked {
    from: Key,
    to: Key,
    /// True if only the number of keys is wanted.
    count: bool,
}

/// The keys in the range.
#[derive(Default)]
struct Found {
    count: u64,
    keys: Vec<Key>,
}

/// Runs the command.
pub(super) fn range(options: &Range, context: &Context) -> Result<Report, Failure> {
    let is_hex = options.at.hex;
    let (from, to) = (key::parse(&options.from, is_hex)?, key::parse(&options.to, is_hex)?);
    if from > to {
        let (from, to) = (&options.from, &options.to);
        let why = format!("{from} is above {to}: keys are ordered by length, then by bytes");
        return Err(Failure::usage(why));
    }
    let asked = Asked { from, to, count: options.count };
    let found = match options.on {
        Side::Host => {
            let ran = async move |session: &Session| Ok(on_host(session, asked).await);
            with_session(&options.at, context, ran)???
        }
        Side::Drive => {
            let (address, connection) = (address(&options.at, context)?, context.options()?);
            let ran = csd_reactor::block_on(&runtime(), move || async move {
                on_drive(&address, &connection, asked).await
            });
            ran.map_err(Failure::run)??
        }
    };
    let mut result = json!({ "count": found.count });
    if options.count {
        return Ok(Report::new(format!("{}\n", counted(found.count, "key")), result));
    }
    result["keys"] = found.keys.iter().map(key::describe).collect::<Vec<Value>>().into();
    let lines: String = found.keys.iter().map(|key| key::shown(key, is_hex) + "\n").collect();
    let text = if found.keys.is_empty() { "no keys\n".to_owned() } else { lines };
    Ok(Report::new(text, result))
}

impl Asked {
    /// Returns the parameters of the program from this key on.
    fn parameters(&self, from: &Key, keys_max: u64) -> Vec<u8> {
        let bound = |key: &Key| ListKey::new(key.as_bytes());
        Parameters { lower: bound(from), upper: bound(&self.to), keys_max }.encode()
    }
}

/// Runs the program over lists of keys.
async fn on_host(session: &Session, asked: Asked) -> Result<Found, Failure> {
    let wanted = if asked.count { Wanted::Result } else { Wanted::Bytes };
    let program = KERNEL.start(&asked.parameters(&asked.from, 0), wanted).map_err(Failure::run)?;
    let mut execution = Execution::new(program, Inputs::new(1), wanted.output());
    let (mut last, mut seen, mut entries) = (None, 0, Vec::new());
    let count = loop {
        let from = last.map(|last: Key| if seen < SEEN_MIN { last } else { last.max(asked.from) });
        let mut page = session.list(from.as_ref(), PAGE_BYTES).await?;
        if last.is_some() && page.first() == last.as_ref() {
            page.remove(0);
        }
        for key in &page {
            if last.is_some_and(|last| last >= *key) {
                return Err(another_order(&session.address().to_string()));
            }
            last = Some(*key);
            KeyList::append_entry(&mut entries, key);
        }
        seen += page.len();
        // The program ends at the first key above the range: it gets keys whose order is known.
        if seen < SEEN_MIN && !page.is_empty() {
            continue;
        }
        execution.push(0, csd_reactor::Buffer::from_slice(&std::mem::take(&mut entries)));
        if let Some(count) = execution.advance().map_err(Failure::run)? {
            break count;
        }
        if page.is_empty() {
            break execution.finish().map_err(Failure::run)?;
        }
    };
    let entries = execution.into_parts().1.iter().flat_map(|part| part.to_vec()).collect();
    found(count, entries, asked.count)
}

/// Has the drive run the program.
async fn on_drive(address: &Address, connection: &Options, asked: Asked) -> Result<Found, Failure> {
    let without = |why: String| Failure::run(format!("{address}: {why}; --on host reads any List"));
    let drive = Drive::connect(address, connection).await.map_err(without)?;
    let programs = drive.compute.programs().await.map_err(Error::from)?;
    let index = programs.iter().position(|program| program.pid() == PROGRAM_ID);
    let index = index.and_then(|index| u16::try_from(index).ok());
    let index = index.ok_or_else(|| without("it has no program range".to_owned()))?;
    let nsid = address.nsid.or_else(|| first_kv(&drive.controller));
    let nsid = nsid.ok_or_else(|| without("it has no key-value namespace".to_owned()))?;
    let asking = Asking { drive: &drive, index, nsid, asked };
    let found = match asked.count {
        true => Ok(Found { count: asking.count().await?, keys: Vec::new() }),
        false => asking.copy().await,
    };
    drive.controller.clone().disconnect().await;
    found
}

fn first_kv(controller: &Controller) -> Option<u32> {
    let is_kv = |kind: &NamespaceKind| matches!(kind, NamespaceKind::Kv { .. });
    let found = controller.namespaces().iter().find(|one| is_kv(&one.kind));
    found.map(|namespace| namespace.nsid)
}

/// A drive that is asked for a range.
struct Asking<'a> {
    drive: &'a Drive,
    /// Index of the program.
    index: u16,
    /// Namespace of the keys.
    nsid: u32,
    asked: Asked,
}

impl Asking<'_> {
    async fn count(&self) -> Result<u64, Failure> {
        let all = self.asked.parameters(&self.asked.from, 0);
        self.execute(&self.asked.from, all, Output::Completion, Controls::default()).await
    }

    /// Fetches the keys through the drive's memory, as many at a time as fit there.
    async fn copy(&self) -> Result<Found, Failure> {
        let memory = Memory::open(&self.drive.controller, NSID_MEMORY).map_err(Error::from);
        let bytes = memory.as_ref().map_or(0, Memory::bytes).min(AREA_BYTES_MAX);
        let keys_max = bytes.saturating_sub(COUNT_BYTES) / ENTRY_BYTES_MAX;
        if keys_max == 0 {
            let why = "the drive has no memory for programs: start it with a larger --memory, or \
                       use --count or --on host";
            return Err(Failure::run(why));
        }
        let (memory, lease) = (memory?, MemoryLease::take(self.drive).await?);
        let copied = self.pages(&memory, &lease, keys_max).await;
        lease.end().await;
        copied
    }

    async fn pages(
        &self,
        memory: &Memory,
        lease: &MemoryLease<'_>,
        keys_max: u64,
    ) -> Result<Found, Failure> {
        let bytes = u32::try_from(COUNT_BYTES + keys_max * ENTRY_BYTES_MAX).expect("8 MiB");
        let output = Output::Memory { nsid: NSID_MEMORY, start: 0, bytes };
        let (mut all, mut from) = (Found::default(), Some(self.asked.from));
        while let Some(first) = from {
            let parameters = self.asked.parameters(&first, keys_max);
            let controls = Controls::default().with_counted(1);
            let count = self.execute(&first, parameters, output, controls).await?;
            let written = memory.read(0, 8).await.map_err(Error::from)?;
            let written = u64::from_le_bytes(*written.first_chunk().unwrap_or(&[0; 8]));
            let entries = match usize::try_from(written.min(bytes.into())) {
                Ok(written @ 1..) => {
                    memory.read(COUNT_BYTES, written).await.map_err(Error::from)?.to_vec()
                }
                _ => Vec::new(),
            };
            // Another run may have written there.
            lease.renew().await?;
            let page = found(count, entries, false)?;
            from = page.keys.last().filter(|_| count == keys_max).and_then(after);
            all.count += count;
            all.keys.extend(page.keys);
        }
        Ok(all)
    }

    async fn execute(
        &self,
        from: &Key,
        parameters: Vec<u8>,
        output: Output,
        controls: Controls,
    ) -> Result<u64, Failure> {
        let execution = execute::Execution {
            program: PROGRAM_ID,
            output,
            sources: vec![SourceData::Keys { nsid: self.nsid, from: Some(*from) }.into()],
            inline: Vec::new(),
            digests: None,
            parameters,
            serial: false,
            cores: 1,
        };
        let done = self.drive.compute.execute_within(self.index, &execution, controls).await;
        done.map_err(|error| match error.status() {
            Some(Status::SOURCE_ORDER) => another_order(&self.drive.url),
            _ => Error::from(error).into(),
        })
    }
}

/// Returns the smallest key above this one.
fn after(key: &Key) -> Option<Key> {
    let mut bytes = key.as_bytes().to_vec();
    for byte in bytes.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return Key::new(&bytes).ok();
        }
    }
    bytes.push(0);
    Key::new(&bytes).ok().filter(|_| bytes.len() <= usize::from(KEY_BYTES_MAX))
}

/// Returns the keys of an answer.
fn found(count: u64, entries: Vec<u8>, count_only: bool) -> Result<Found, Failure> {
    if count_only {
        return Ok(Found { count, keys: Vec::new() });
    }
    let malformed = || Failure::run("the answer of the program is no list of keys");
    let keys = KeyList::parse_entries(count, &entries).ok_or_else(malformed)?;
    Ok(Found { count, keys })
}

/// Returns the refusal of a namespace whose keys are in another order.
fn another_order(drive: &str) -> Failure {
    Failure::usage(format!(
        "{drive} keeps its keys in another order, in which a range is not together: start the \
         drive with --kv-index ordered, or use csd kv ls"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_key_follows_in_the_order_of_keys() {
        let next = |key: &[u8]| {
            let key = Key::new(key).unwrap();
            let next = after(&key);
            assert!(next.is_none_or(|next| next > key));
            next.map(|next| next.as_bytes().to_vec())
        };
        assert_eq!(next(b"a"), Some(b"b".to_vec()));
        assert_eq!(next(b"a\xFF"), Some(b"b\0".to_vec()));
        assert_eq!(next(b"\xFF"), Some(vec![0, 0]));
        assert_eq!(next(&[0xFF; 15]), Some(vec![0; 16]));
        assert_eq!(next(&[0xFF; 16]), None);
    }
}
