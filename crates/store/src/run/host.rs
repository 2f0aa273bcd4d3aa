//! The host's part of a run: the same chunks over the same wire, the same kernel on this core.
//!
//! The kernel runs on the core that received the chunks, not on a lane: `n` cores of a host are
//! `n` threads, which receive and compute. Invariant: of a unit that is a part no more than its
//! chunks are in memory, and what the kernel makes of them.

use std::collections::VecDeque;
use std::rc::Rc;

use csd_reactor::{Buffer, Class, JoinHandle, busy, spawn};

use super::drives::{self, Part};
use super::kernel::Tally;
use super::link::is_lost;
use super::queue::Taken;
use super::site::Site;
use super::target::Target;
use super::{Error, Share, Way};
use crate::catalogue::Entry;
use crate::layout::Run;
use crate::object::read_chunk;

/// Chunks that a core works on at once.
const CHUNKS_AHEAD: usize = 8;
/// Parts that a core works on at once.
const PARTS_AHEAD: usize = 2;

type Unit = JoinHandle<Result<Tally, (Taken, Error)>>;

/// Takes units until none is left.
pub(super) async fn work(site: &Rc<Site>) -> Result<Part, Error> {
    let before = busy();
    let mut pending: VecDeque<Unit> = VecDeque::new();
    let (mut tally, mut failed) = (Tally::default(), None);
    let ahead = match (site.job.by_parts(), site.way) {
        (true, Way::Split) => 1,
        (true, _) => PARTS_AHEAD,
        // What is taken early is lost to drives that are slow to begin.
        (false, Way::Split) => CHUNKS_AHEAD / 2,
        (false, _) => CHUNKS_AHEAD,
    };
    loop {
        while failed.is_none() && pending.len() < ahead {
            let Some(taken) = site.queue.take_for_host() else { break };
            let site = Rc::clone(site);
            pending.push_back(spawn(Class::Foreground, async move {
                unit(&site, &taken).await.map_err(|error| (taken, error))
            }));
        }
        let Some(unit) = pending.pop_front() else { break };
        match unit.await {
            Ok(done) => {
                (site.progress)(done.bytes);
                tally.add(done);
            }
            Err((taken, error)) if is_lost(&error) => {
                site.lose(taken.member, &error, Some(taken.run));
            }
            Err((_, error)) => {
                site.queue.stop();
                failed = failed.or(Some(error));
            }
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    let busy_s = super::seconds(busy().since(&before).busy_ns());
    let who = format!("host core {}", csd_reactor::core_id());
    let elements = tally.bytes / site.job.inputs[0].element.bytes() as u64;
    Ok(Part { tally, share: Share { who, elements, busy_s } })
}

/// Reads a unit, computes, and stores what came of it beside what it was made of.
async fn unit(site: &Rc<Site>, taken: &Taken) -> Result<Tally, Error> {
    let job = &site.job;
    let mut inputs = Vec::with_capacity(job.inputs.len());
    for entry in &job.inputs {
        let run = match taken.run.part.filter(|_| job.by_parts()) {
            None => Some(taken.run.clone()),
            Some(part) => drives::part_run(entry, part),
        };
        inputs.push(read_all(site, entry, taken.member, run).await?);
    }
    let computed = job.compute(&inputs, &site.vector).map_err(|why| {
        let names: Vec<_> = job.inputs.iter().map(|entry| entry.name.as_str()).collect();
        let drive = site.links[taken.member].drive().name.clone();
        Error::Corrupt { drive, object: names.join(" or "), why }
    });
    let (result, mut bytes) = computed?;
    if let Target::Object { entry, .. } = &site.target {
        store_all(site, entry, taken, &bytes).await?;
        bytes.clear();
    }
    let mut tally = Tally::of_bytes(drives::bytes(job, &taken.run));
    job.absorb(&mut tally, taken, result, bytes);
    Ok(tally)
}

/// The chunks of a run, several at once.
async fn read_all(
    site: &Rc<Site>,
    entry: &Entry,
    member: usize,
    run: Option<Run>,
) -> Result<Vec<Buffer>, Error> {
    let Some(run) = run else { return Ok(Vec::new()) };
    let mut chunks = Vec::new();
    let mut pending: VecDeque<JoinHandle<Result<Buffer, Error>>> = VecDeque::new();
    let mut numbers = (0..run.locals.end - run.locals.start).map(|i| run.first + i * run.stride);
    let entry = Rc::new(entry.clone());
    loop {
        while pending.len() < CHUNKS_AHEAD {
            let Some(chunk) = numbers.next() else { break };
            let (site, entry) = (Rc::clone(site), Rc::clone(&entry));
            pending.push_back(spawn(Class::Foreground, async move {
                let read = async |drive: &Rc<_>| read_chunk(drive, &entry, chunk).await;
                site.links[member].run(read).await
            }));
        }
        let Some(chunk) = pending.pop_front() else { return Ok(chunks) };
        chunks.push(chunk.await?);
    }
}

/// Stores the chunks of what a unit gave.
async fn store_all(
    site: &Rc<Site>,
    entry: &Entry,
    taken: &Taken,
    bytes: &[u8],
) -> Result<(), Error> {
    let (mut number, stride) = site.target.numbers(taken);
    for chunk in bytes.chunks(entry.chunk_bytes as usize) {
        let key = csd_nvme::execute::chunk_key(&entry.id.0, number);
        let store = async |drive: &Rc<crate::array::Drive>| {
            let stored = drive.objects.store(&key, vec![Buffer::from_slice(chunk)], 0).await;
            stored.map_err(|error| Error::command(drive, error))
        };
        site.links[taken.member].run(store).await?;
        number += stride;
    }
    Ok(())
}
