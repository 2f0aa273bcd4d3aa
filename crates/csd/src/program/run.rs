//! `csd program run` over files, in the memory of one drive.
//!
//! Invariant: the memory range set that it creates is deleted, even if the program fails.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use csd_initiator::{Compute, Memory, NamespaceKind};
use csd_nvme::compute::Controls;
use csd_nvme::memory::{Range, UNIT_BYTES};
use csd_nvme::program::MemoryRange;
use csd_reactor::{Buffer, now};
use csd_store::object::Sink;
use serde_json::json;

use super::{addresses, with_each};
use crate::cli::program::Run;
use crate::context::Context;
use crate::report::{Failure, Report};
use crate::table::pairs;
use crate::target::Target;
use crate::units::{duration, grouped, size};

/// Runs a program that a drive has loaded.
pub(crate) fn run(index: u16, options: &Run, context: &Context) -> Result<Report, Failure> {
    let addresses = addresses(&options.at, context)?;
    if addresses.len() != 1 {
        return Err(Failure::usage("a program is run on one drive: say which with --drive"));
    }
    let inputs: Vec<Vec<u8>> =
        options.input.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
    let controls = controls(options)?;
    let output = options.output.clone();
    let job = Job {
        index,
        controls,
        parameters: parameters(options),
        base: options.memory_at.next_multiple_of(UNIT_BYTES),
        room: if output.is_some() { room(options) } else { 0 },
        inputs,
    };
    let target = match &output {
        Some(file) => Some(Target::open(file, options.force)?),
        None => None,
    };
    let mut done =
        with_each(context, addresses, async move |compute: &Compute| job.run(compute).await)?;
    let (drive, done) = done.pop().expect("one drive");
    let bytes = done.output.len() as u64;
    let to_stdout = target.as_ref().is_some_and(|(target, _)| target.is_stdout());
    if let (Some(file), Some(target)) = (&output, target) {
        write(file, target, &done.output)?;
    }
    let seconds = done.took.as_secs_f64();
    let text = pairs(&[
        ("result", grouped(done.result)),
        ("written", size(bytes)),
        ("time", duration(seconds)),
        ("drive", context.shown(&drive)),
    ]);
    let result = json!({
        "drive": drive, "index": index, "result": done.result.to_string(), "written_bytes": bytes,
        "wall_s": seconds,
    });
    // Standard output has only the program's output.
    let text = if to_stdout { String::new() } else { text };
    Ok(Report::new(text, result))
}

/// Returns the memory limit of an execution, MiB, if the user gave one.
pub(super) fn memory_mib(options: &Run) -> Result<Option<u16>, Failure> {
    let mib = options.memory.map(|bytes| u16::try_from(bytes.div_ceil(1 << 20)));
    mib.transpose().map_err(|_| Failure::usage("--memory is below 64 GiB"))
}

/// Returns the program's parameters.
pub(super) fn parameters(options: &Run) -> Vec<u8> {
    options.parameter.iter().flat_map(|part| part.0.clone()).collect()
}

fn controls(options: &Run) -> Result<Controls, Failure> {
    let mib = memory_mib(options)?.unwrap_or(0);
    let controls = Controls::default().with_memory_mib(mib.into());
    let controls = controls.with_time_ms(options.time.unwrap_or(0).into());
    let output = if options.output.is_some() { options.input.len() as u64 + 1 } else { 0 };
    Ok(controls.with_output(output).with_counted(options.output.is_some().into()))
}

/// Default space for the output, bytes.
const ROOM_BYTES: u64 = 1 << 20;

/// Returns the space for the output and its length field, bytes.
fn room(options: &Run) -> u64 {
    (options.room.unwrap_or(ROOM_BYTES) + 8).next_multiple_of(UNIT_BYTES)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let done = match path == Path::new("-") {
        true => io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes),
        false => fs::read(path),
    };
    let bytes = done.map_err(|error| Failure::os(path.display(), &error))?;
    match bytes.is_empty() {
        true => Err(Failure::usage(format!("{}: it is empty", path.display()))),
        false => Ok(bytes),
    }
}

/// Writes the program's output to the target.
pub(super) fn write(
    file: &str,
    (target, mut sink): (Target, Sink),
    bytes: &[u8],
) -> Result<(), Failure> {
    let written = sink.write_all(bytes).and_then(|()| sink.flush());
    written.map_err(|error| Failure::run(format!("{file}: {error}")))?;
    target.finish()
}

/// A program with its inputs and limits.
struct Job {
    index: u16,
    controls: Controls,
    parameters: Vec<u8>,
    base: u64,
    room: u64,
    inputs: Vec<Vec<u8>>,
}

/// Results of an execution.
struct Done {
    result: u64,
    output: Vec<u8>,
    took: Duration,
}

impl Job {
    async fn run(&self, compute: &Compute) -> Result<Done, Failure> {
        let memory = memory(compute)?;
        let mut ranges = Vec::new();
        let mut at = self.base;
        for input in &self.inputs {
            let length = input.len() as u64;
            ranges.push(MemoryRange { nsid: memory.nsid(), range: Range { start: at, length } });
            let mut padded = input.clone();
            padded.resize(input.len().next_multiple_of(4), 0);
            let pieces = padded.chunks(1 << 20).map(Buffer::from_slice).collect();
            memory.write(at, pieces).await.map_err(Failure::run)?;
            at += padded.len() as u64;
        }
        let output = Range { start: at, length: self.room };
        if self.room > 0 {
            ranges.push(MemoryRange { nsid: memory.nsid(), range: output });
        }
        let rsid = compute.create_range_set(&ranges).await.map_err(Failure::run)?;
        let began = now();
        let ran = compute.execute_set(self.index, rsid, &self.parameters, self.controls).await;
        let took = now().since(began);
        compute.delete_range_set(rsid).await.map_err(Failure::run)?;
        let result = ran.map_err(Failure::run)?;
        let length = usize::try_from(self.room).map_err(Failure::run)?;
        let output = match length {
            0 => Vec::new(),
            length => counted(&memory.read(at, length).await.map_err(Failure::run)?)?,
        };
        Ok(Done { result, output, took })
    }
}

/// Returns the program's output, which follows its length in `room`.
fn counted(room: &[u8]) -> Result<Vec<u8>, Failure> {
    let (count, bytes) = room.split_first_chunk().expect("room for a count");
    let count = usize::try_from(u64::from_le_bytes(*count)).ok();
    let written = count.and_then(|count| bytes.get(..count));
    let odd = || Failure::run("the drive says that more was written than there was room for");
    written.map(<[u8]>::to_vec).ok_or_else(odd)
}

fn memory(compute: &Compute) -> Result<Memory, Failure> {
    let controller = compute.controller();
    let mut all = controller.namespaces().iter();
    let found = all.find(|namespace| matches!(namespace.kind, NamespaceKind::Memory { .. }));
    let missing = || format!("{} has no memory namespace", controller.address());
    let nsid = found.ok_or_else(|| Failure::run(missing()))?.nsid;
    Memory::open(controller, nsid).map_err(Failure::run)
}
