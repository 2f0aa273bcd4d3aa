//! The drives' part of a program's run: an execution over one of a drive's own chunks at a time.
//!
//! Reads no chunk, except for the first bytes where lines need them. An execution writes its output
//! to its own area of the drive's memory, which the run has leased, and the host fetches it from
//! there. Invariant: an execution that was started on a lost connection may still write, but its
//! area is not read any more, because each connection has areas of its own.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use csd_initiator::Memory;
use csd_nvme::compute::Controls;
use csd_nvme::memory::UNIT_BYTES;
use csd_nvme::status::Status;
use csd_nvme::vendor::execute::{Execution, Output};
use csd_reactor::{Semaphore, now};
use csd_store::array::Drive;
use csd_store::piece::is_damage;

use super::context::StepContext;
use super::guest::{Guest, LOADS_MAX};
use super::lines::Cut;
use super::sources::sources;
use super::{Answer, Records, host};
use crate::drives::unsound;
use crate::error::Error;
use crate::link::TRIES;
use crate::queue::Taken;
use crate::target::MEMORY_NSID;
use crate::team::Team;
use crate::units::in_own_units;
use crate::work::{self, Done, MemberError, Span};
use crate::{InvalidJob, lease};

/// Executions of one drive in flight at once.
const IN_FLIGHT: u64 = 4;
/// Most connections to one drive in a run.
const CONNECTIONS: u64 = TRIES as u64 + 1;
/// An execution that takes longer than its time limit divided by this runs alone.
const LONG_PART: u32 = 40;
/// Size of the field with the number of bytes written.
const COUNT_BYTES: u64 = 8;
/// Bytes of an output that are fetched together with their number.
const FETCHED_BYTES: u64 = 4096;

/// Areas of a drive's memory to which executions write.
#[derive(Clone, Copy)]
pub(super) struct Areas {
    /// Size of an area, bytes; 0 when nothing is written.
    bytes: u64,
    /// Number of executions at once.
    count: u64,
}

impl Areas {
    /// Returns the areas of a drive with this much memory for programs, each with room for this
    /// many bytes.
    fn new(memory_bytes: u64, room_bytes: u32) -> Option<Self> {
        let bytes = (COUNT_BYTES + u64::from(room_bytes)).next_multiple_of(UNIT_BYTES);
        let count = IN_FLIGHT.min(memory_bytes / bytes / CONNECTIONS);
        (count > 0).then_some(Self { bytes, count })
    }

    /// Returns the first byte of an area after this number of reconnections.
    fn start(self, area: u64, renewals: u32) -> u64 {
        (u64::from(renewals) * self.count + area) * self.bytes
    }
}

/// Returns the areas of a member's drive.
///
/// # Errors
/// When its memory is too small for one area.
pub(super) fn areas(context: &StepContext, member: usize) -> Result<Areas, Error> {
    if !context.task().sandbox.emits() {
        return Ok(Areas { bytes: 0, count: IN_FLIGHT });
    }
    // Without the drive, the host takes over its work.
    let Some(drive) = context.common.links[member].connected() else {
        return Ok(Areas { bytes: 0, count: 1 });
    };
    let room_bytes = context.task().limits.room_bytes;
    let memory = Memory::open(&drive.controller, MEMORY_NSID).map_or(0, |memory| memory.bytes());
    Areas::new(memory, room_bytes).ok_or_else(|| {
        let smaller = match context.task().sandbox.built_in() {
            Some(_) => "",
            None => "say a smaller --room, ",
        };
        Error::InvalidJob(InvalidJob(format!(
            "drive {} has {memory} bytes of memory for programs, which is not {CONNECTIONS} times \
             the {room_bytes} that an execution may write: {smaller}start it with a larger \
             --memory, or use --on host",
            drive.name
        )))
    })
}

/// Number of executions in flight on a drive: one until it has proved short, and one again after a
/// long one. A drive bounds the time from a command to its answer, and concurrent executions wait
/// for each other in that time.
struct Pace {
    /// Permits that let the other workers begin.
    others: Semaphore,
    alone: Cell<bool>,
    /// Longest execution that may run concurrently with others.
    short: Duration,
}

impl Pace {
    /// Returns the pace for executions with this time limit.
    fn new(time_ms: u32) -> Self {
        let short = Duration::from_millis(time_ms.into()) / LONG_PART;
        Self { others: Semaphore::new(0), alone: Cell::new(false), short }
    }

    /// Adjusts the pace to the time that an execution took.
    fn took(&self, span: Option<Span>) {
        if span.is_some_and(|(begin, end)| end.since(begin) > self.short) {
            self.alone.set(true);
        }
    }
}

/// Lets `member`'s drive process its chunks until none is left. If the drive is lost, records it,
/// and the others go on.
pub(super) async fn work(context: &Rc<StepContext>, member: usize) -> Result<Done, Error> {
    let areas = areas(context, member)?;
    let pace = Rc::new(Pace::new(context.task().limits.time_ms));
    let guest = Rc::new(Guest::new(context.owner));
    let done = in_own_units(&context.common, &context.task().inputs, member, async || {
        let mut workers = Team::default();
        for area in 0..areas.count {
            let (context, guest, pace) = (Rc::clone(context), Rc::clone(&guest), Rc::clone(&pace));
            workers
                .add(async move { worker(&context, &guest, &pace, (member, areas, area)).await });
        }
        work::together(workers).await
    });
    let done = done.await;
    if let Some(drive) = context.common.links[member].connected() {
        guest.unload(&drive, context.task()).await;
    }
    done
}

/// Runs one of a drive's workers, with an area of its own.
async fn worker(
    context: &StepContext,
    guest: &Guest,
    pace: &Pace,
    (member, areas, area): (usize, Areas, u64),
) -> Result<Done, Error> {
    let others = usize::try_from(areas.count - 1).expect("at most 3");
    let mut first = area == 0;
    if !first {
        pace.others.acquire(1).await.forget();
    }
    let part = u32::try_from(2 * areas.count).expect("at most 8");
    let may_go_on = || area == 0 || !pace.alone.get();
    let execute = async |taken: &Taken| {
        let done = chunk(context, guest, taken, (areas, area)).await;
        if let Ok((_, span)) = &done {
            pace.took(*span);
        }
        if std::mem::take(&mut first) {
            pace.others.add(others);
        }
        done
    };
    let done = work::worker(context, member, (part, 1), may_go_on, execute).await;
    if first {
        pace.others.add(others);
    }
    done
}

/// Runs the program over a chunk in its drive, and adds the answer to those to fold. Returns the
/// number of elements, and the time of the execution.
async fn chunk(
    context: &StepContext,
    guest: &Guest,
    taken: &Taken,
    area: (Areas, u64),
) -> Result<(u64, Option<Span>), MemberError> {
    let (task, number, member) = (context.task(), taken.run.first, taken.member);
    let _under_way = context.shared.gather.begin(number);
    let cut = match task.records {
        Records::Elements => Cut::default(),
        Records::Lines => context.heads.cut((task, &context.common), number).await?,
    };
    let begin = now();
    let ours = |error| (member, error);
    let answer = match context.sees_nothing(number, &cut) {
        true => None,
        false => {
            let run = async |drive: &Rc<Drive>| {
                execute(context, guest, (drive, taken), (&cut, area)).await
            };
            match context.common.links[member].run(run).await {
                Err(why @ (Error::Program { .. } | Error::InvalidJob(_)))
                    if task.sandbox.host_may_do() =>
                {
                    context.shared.refuse(&why);
                    return Ok((host::chunk(context, taken).await?, None));
                }
                answer => Some(answer.map_err(ours)?),
            }
        }
    };
    let span = answer.as_ref().map(|_| (begin, now()));
    let elements = context.done(number, answer, &cut).await.map_err(ours)?;
    Ok((elements, span))
}

async fn execute(
    context: &StepContext,
    guest: &Guest,
    (drive, taken): (&Drive, &Taken),
    (cut, (areas, area)): (&Cut, (Areas, u64)),
) -> Result<Answer, Error> {
    let (task, limits) = (context.task(), context.task().limits);
    let renewals = context.common.links[taken.member].renewals();
    let (start, bytes) = (areas.start(area, renewals), areas.bytes);
    let emits = u64::from(bytes > 0);
    let output = match u32::try_from(bytes).expect("a room and a count") {
        0 => Output::Completion,
        bytes => Output::Memory { nsid: MEMORY_NSID, start, bytes },
    };
    let (sources, digests) = sources(context, drive.block.block_bytes(), taken, cut);
    let execution = Execution {
        program: task.sandbox.built_in().unwrap_or(context.owner.pid),
        output,
        sources,
        inline: cut.handed.clone(),
        digests,
        parameters: task.parameters(taken.run.first).to_vec(),
        serial: false,
        cores: 1,
    };
    let controls = Controls::default().with_counted(emits);
    let controls = match task.sandbox.built_in() {
        Some(_) => controls,
        None => {
            let controls = controls.with_memory_mib(limits.memory_mib.into());
            controls.with_time_ms(limits.time_ms.into())
        }
    };
    for _ in 0..LOADS_MAX {
        // A drive that was restarted may have lost the lease of its memory, too.
        let prepare = async || match emits {
            0 => Ok(()),
            _ => lease::hold(drive, context.owner.pid).await,
        };
        let index = guest.index((drive, renewals), task, prepare).await?;
        let ran = drive.compute.execute_within(index, &execution, controls).await;
        match ran {
            Err(error) if is_gone(error.status()) => guest.is_gone(),
            Err(error) => return Err(failure(context, drive, taken, error)),
            Ok(result) => {
                let output = match emits {
                    0 => Vec::new(),
                    _ => fetch(drive, start, bytes).await?,
                };
                return Ok(Answer { result, output });
            }
        }
    }
    let why = format!("somebody unloads it from drive {} while it is to run", drive.name);
    Err(Error::Program { why })
}

/// Returns true if this status means that the program is no longer loaded at its index.
fn is_gone(status: Option<Status>) -> bool {
    let gone = [Status::NO_PROGRAM, Status::PROGRAM_NOT_ACTIVATED, Status::INVALID_PROGRAM_INDEX];
    status.is_some_and(|status| gone.contains(&status))
}

fn failure(
    context: &StepContext,
    drive: &Drive,
    taken: &Taken,
    error: csd_initiator::Error,
) -> Error {
    match error.status() {
        Some(Status::SOURCE_MISSING) => unsound(drive, context.task().names(), &error),
        status if is_damage(status) => unsound(drive, context.task().names(), &error),
        Some(Status::INSUFFICIENT_PROGRAM_RESOURCES) => {
            let limits = context.task().limits;
            Error::InvalidJob(InvalidJob(format!(
                "drive {} allows a program less than {} MiB of memory or {} ms: say --memory and \
                 --time",
                drive.name, limits.memory_mib, limits.time_ms
            )))
        }
        _ => match error.reason() {
            Some(reason) => {
                let (number, names) = (taken.run.first, context.task().names());
                let (unit, drive) = (context.task().unit_name(), &drive.name);
                let why = format!("{unit} {number} of {names:?} on drive {drive}: {reason}");
                Error::Program { why }
            }
            None => Error::command(drive, error),
        },
    }
}

/// Fetches the output of an execution.
async fn fetch(drive: &Drive, start: u64, bytes: u64) -> Result<Vec<u8>, Error> {
    let failed = |error| Error::command(drive, error);
    let memory = Memory::open(&drive.controller, MEMORY_NSID).map_err(failed)?;
    let read = async |start, bytes: u64| {
        let bytes = usize::try_from(bytes).expect("a room and a count");
        memory.read(start, bytes).await.map_err(failed)
    };
    let first = read(start, bytes.min(FETCHED_BYTES)).await?;
    let (count, rest) = first.split_first_chunk().expect("room for a count");
    let count = u64::from_le_bytes(*count);
    if count > bytes - COUNT_BYTES {
        let why = format!("drive {} says that more was written than has room", drive.name);
        return Err(Error::Program { why });
    }
    let mut output = rest.to_vec();
    let whole = (COUNT_BYTES + count).next_multiple_of(UNIT_BYTES);
    if whole > first.len() as u64 {
        let more = read(start + first.len() as u64, whole - first.len() as u64).await?;
        output.extend_from_slice(&more);
    }
    output.truncate(usize::try_from(count).expect("at most the room"));
    Ok(output)
}

#[cfg(test)]
mod tests {
    use csd_reactor::Instant;

    use super::*;

    #[test]
    fn an_execution_that_is_long_for_its_limit_stays_alone() {
        let at = |ms: u64| Instant::from_ns(ms * 1_000_000);
        let pace = Pace::new(20_000);
        for (span, alone) in [(None, false), (Some(500), false), (Some(501), true)] {
            pace.took(span.map(|ms| (at(7), at(7 + ms))));
            assert_eq!(pace.alone.get(), alone, "{span:?} ms");
        }
    }

    #[test]
    fn areas_are_as_many_as_have_room() {
        let count = |memory, room| Areas::new(memory, room).map(|areas| (areas.bytes, areas.count));
        assert_eq!(count(64 << 20, 1 << 20), Some(((1 << 20) + 8, 4)));
        assert_eq!(count(64 << 20, 8 << 20), Some(((8 << 20) + 8, 1)));
        assert_eq!((count(4 << 20, 1 << 20), count(0, 1)), (None, None));
        let areas = Areas::new(64 << 20, 1 << 20).unwrap();
        let all = (0..=TRIES).flat_map(|renewals| (0..areas.count).map(move |a| (a, renewals)));
        let starts: Vec<u64> = all.map(|(area, renewals)| areas.start(area, renewals)).collect();
        assert!(starts.windows(2).all(|pair| pair[0] + areas.bytes <= pair[1]), "{starts:?}");
        assert!(starts[starts.len() - 1] + areas.bytes <= 64 << 20);
    }
}
