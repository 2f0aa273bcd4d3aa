//! Working sets on an array: an object for each kernel and size, removed afterwards.
//!
//! Objects are stored as blocks. Every drive holds a whole working set; the sets are equal.
//! Invariant: dropping the value removes the objects, also after a signal, which ends the
//! measurement before its next step. Only if the process is killed they remain: their names begin
//! with [`PREFIX`], `csd ls --all` shows them and `csd rm` removes them.

use std::io::{self, Read};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use csd_kernels::kernel::{Kernel, Sample};
use csd_measure::characterize::region::{PIECE_BYTES, Region};
use csd_store::ElementType;
use csd_store::array::{Array, ArrayFile, BLOCK_NSID, Drive, Plan};
use csd_store::catalogue::Placement;
use csd_store::extent_ranges::byte_ranges;
use csd_store::object::{self, On, PutOptions};
use csd_store::source::Source;

use crate::array::lock::Writers;
use crate::context::{Context, with_plan};
use crate::report::Failure;
use crate::runtime::{Interrupt, random};
use crate::units::hex;

/// Beginning of the names of all such objects.
const PREFIX: &str = "characterize-";

/// A drive and its working sets.
pub(super) struct OnDrive {
    /// Name in the array.
    pub(super) name: String,
    pub(super) url: String,
    /// Regions of its working sets, by kernel and bytes.
    pub(super) regions: Vec<(&'static str, u64, Region)>,
}

/// The objects, and the drives that hold them.
pub(super) struct Objects {
    /// Drives that are up, in the order of the array.
    pub(super) drives: Vec<OnDrive>,
    /// Messages about drives that are down.
    pub(super) down: Vec<String>,
    plan: Plan,
    connection: csd_initiator::Options,
    names: Vec<String>,
    interrupt: Interrupt,
    // Prevents adding drives while objects are written and removed.
    _writers: Writers,
}

impl Objects {
    /// Puts an object for each kernel and size.
    pub(super) fn put(
        context: &Context,
        kernels: &[&'static dyn Kernel],
        sizes: &[u64],
    ) -> Result<Self, Failure> {
        let _writers = Writers::share(context.array_path())?;
        let file = ArrayFile::load(context.array_path())?;
        let plan = Plan::new(&file);
        let id = hex(&random::<4>()?);
        // Before there is an object to remove.
        let interrupt = Interrupt::watch()?;
        let (connection, names) = (context.options()?, Vec::new());
        let look = async |array: &Array| {
            array.require_majority().map_err(Failure::from)?;
            let drive = |drive: &Rc<Drive>| OnDrive {
                name: drive.name.clone(),
                url: drive.url.clone(),
                regions: Vec::new(),
            };
            Ok((array.drives().map(drive).collect(), array.down()))
        };
        let (drives, down) = with_plan(&plan, connection.clone(), look)?;
        let mut objects = Self { drives, down, plan, connection, names, interrupt, _writers };
        for &kernel in kernels {
            for &bytes in sizes {
                let name = format!("{PREFIX}{id}/{}-{}K", kernel.name(), bytes >> 10);
                objects.one(kernel, bytes, name)?;
            }
        }
        Ok(objects)
    }

    fn one(
        &mut self,
        kernel: &'static dyn Kernel,
        bytes: u64,
        name: String,
    ) -> Result<(), Failure> {
        self.names.push(name.clone());
        let interrupted = self.interrupted();
        let on_drives =
            with_plan(&self.plan, self.connection.clone(), async move |array: &Array| {
                let members = array.drives().count() as u64;
                let reader = WorkingSetReader::new(kernel.sample(), bytes, members, interrupted);
                let chunk_bytes = Some(reader.chunk_bytes);
                let source = Source::raw(&name, Box::new(reader), ElementType::Bytes);
                let options = PutOptions { on: On::Block, chunk_bytes, ..PutOptions::new(name) };
                let entry =
                    object::put(array, source, &options, &object::Progress::none()).await?.entry;
                let Placement::Block(extents) = &entry.placement else {
                    return Err(Failure::run("an object put on blocks is not kept as blocks"));
                };
                let mut on_drives = Vec::new();
                for (member, extents) in entry.members.iter().zip(extents) {
                    let drive = array.drive(*member)?;
                    on_drives.push((drive.name.clone(), byte_ranges(extents, 0, bytes)));
                }
                Ok(on_drives)
            })?;
        for drive in &mut self.drives {
            let own = on_drives.iter().find(|(name, _)| *name == drive.name);
            let (_, ranges) = own.ok_or_else(|| {
                Failure::run(format!("drive {} went down or came up meanwhile", drive.name))
            })?;
            let region = Region::new(BLOCK_NSID, ranges.clone());
            drive.regions.push((kernel.name(), bytes, region));
        }
        Ok(())
    }

    /// Returns the flag that a signal sets.
    pub(super) fn interrupted(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupt.asked)
    }

    /// Removes the objects.
    pub(super) fn remove(mut self) -> Result<(), Failure> {
        let names = std::mem::take(&mut self.names);
        self.remove_all(names)
    }

    fn remove_all(&self, names: Vec<String>) -> Result<(), Failure> {
        if names.is_empty() {
            return Ok(());
        }
        with_plan(&self.plan, self.connection.clone(), async move |array: &Array| {
            let mut result = Ok(());
            for name in names {
                let removed = object::remove(array, &name).await;
                result = result.and(removed.map(drop).map_err(Failure::from));
            }
            result
        })
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // Runs after another failure, which is the one to report.
        let names = std::mem::take(&mut self.names);
        let _removed = self.remove_all(names);
    }
}

/// Reader of the object's bytes: a working set for each member, interleaved by chunks.
struct WorkingSetReader {
    sample: Sample,
    bytes: u64,
    members: u64,
    /// A power of two that divides the working set.
    chunk_bytes: u64,
    piece: Vec<u8>,
    chunk: Option<u64>,
    at: u64,
    /// Ends the reading.
    interrupted: Arc<AtomicBool>,
}

impl WorkingSetReader {
    fn new(sample: Sample, bytes: u64, members: u64, interrupted: Arc<AtomicBool>) -> Self {
        let chunk_bytes = PIECE_BYTES.min(1 << bytes.trailing_zeros());
        let (piece, chunk, at) = (Vec::new(), None, 0);
        Self { sample, bytes, members, chunk_bytes, piece, chunk, at, interrupted }
    }
}

impl Read for WorkingSetReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.bytes * self.members {
            return Ok(0);
        }
        let chunk = self.at / self.chunk_bytes;
        if self.chunk != Some(chunk) {
            if self.interrupted.load(Relaxed) {
                return Err(io::Error::other("interrupted"));
            }
            // Chunk k of the object is chunk k / members of its member's set.
            let start = chunk / self.members * self.chunk_bytes;
            self.piece.resize(usize::try_from(self.chunk_bytes).expect("at most a MiB"), 0);
            self.sample.fill_set(self.bytes, start, &mut self.piece);
            self.chunk = Some(chunk);
        }
        let from = usize::try_from(self.at % self.chunk_bytes).expect("below a MiB");
        let length = out.len().min(self.piece.len() - from);
        out[..length].copy_from_slice(&self.piece[from..from + length]);
        self.at += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use csd_kernels::registry;

    use super::*;

    #[test]
    fn every_member_gets_the_whole_set() {
        let cases =
            [("count", 1, 3 << 20), ("vector-add", 2, 320 << 10), ("array-merge", 3, 4 << 20)];
        for (name, members, bytes) in cases {
            let sample = || registry::by_name(name).unwrap().sample();
            let mut whole = vec![0; usize::try_from(bytes).unwrap()];
            sample().fill_set(bytes, 0, &mut whole);
            let mut bytes_read = Vec::new();
            let mut reader = WorkingSetReader::new(sample(), bytes, members, Arc::default());
            reader.read_to_end(&mut bytes_read).unwrap();
            let chunk_bytes = (1 << 20).min(1 << bytes.trailing_zeros());
            let chunks: Vec<&[u8]> = bytes_read.chunks(chunk_bytes).collect();
            let members = usize::try_from(members).unwrap();
            for member in 0..members {
                let own = chunks.iter().skip(member).step_by(members);
                assert!(own.copied().collect::<Vec<_>>().concat() == whole, "{name}, {member}");
            }
        }
    }
}
