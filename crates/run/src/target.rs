//! Destination of a run's output: none, an object, or the host.
//!
//! Contains no code of kernels. Invariant: an object is sealed only after every unit of the run was
//! done.

use std::sync::Arc;

use csd_kernels::ElementType;
use csd_kernels::kernel::{AnswerForm, Wanted, Writes};
use csd_nvme::vendor::execute::Output;
use csd_store::array::{Array, DriveIndex, OBJECTS_NSID};
use csd_store::catalogue::Entry;
use csd_store::layout::{self, Kind, Layout, Part, Parts};
use csd_store::object::{Draft, On, Shape, Stored, read_chunk};

use crate::Answer;
use crate::error::Error;
use crate::error::InvalidJob;
use crate::job::Job;
use crate::link::TRIES;
use crate::queue::Taken;

pub(crate) use csd_nvme::vendor::NSID_MEMORY as MEMORY_NSID;

/// Destination of the bytes that executions write.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    /// No output: only results are wanted.
    Nothing,
    /// Chunks of an object.
    Object {
        entry: Arc<Entry>,
        /// First chunk number reserved for each part.
        rooms: Arc<[u32]>,
        /// Member of each part, if the object does not lie where its input does.
        moved: Option<Arc<[u16]>>,
    },
    /// Sums of rows, through a drive's memory.
    Sums {
        /// First byte of the sums of row 0.
        start: u64,
        /// Size of a sum, bytes.
        bytes: u64,
    },
    /// Bytes of answers, through areas of a drive's memory: one for each concurrent execution.
    Areas {
        /// Size of an area, bytes.
        bytes: u32,
        /// Number of concurrent executions.
        count: u32,
    },
}

/// Area of a drive's memory for an execution. Concurrent executions and successive connections have
/// separate areas, so an execution that outlives its connection does not disturb another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Number of the execution among the concurrent ones.
    pub(crate) execution: u32,
    /// Number of times that the drive was reconnected.
    pub(crate) renewals: u32,
}

impl Destination {
    /// Returns the destination of a job that writes no object.
    pub(crate) fn without_object(job: &Job) -> Self {
        match job.plan.answer {
            AnswerForm::Result => Self::Nothing,
            AnswerForm::Bytes(bytes) => Self::Areas { bytes, count: job.in_flight() },
            AnswerForm::RowSums { bytes, vector_bytes } => {
                // The sums follow the vector.
                let start = vector_bytes.next_multiple_of(4096);
                Self::Sums { start, bytes: bytes.into() }
            }
        }
    }

    /// Returns the destination of an execution over `taken`.
    pub(crate) fn output(&self, job: &Job, taken: &Taken, slot: Slot) -> Output {
        match self {
            Self::Nothing => Output::Completion,
            Self::Object { entry, .. } => {
                let (first, stride) = self.numbers(taken);
                Output::KvChunks {
                    nsid: OBJECTS_NSID,
                    prefix: entry.id.0,
                    first,
                    stride,
                    chunk_bytes: entry.chunk_bytes,
                }
            }
            Self::Sums { .. } | Self::Areas { .. } => {
                let (start, bytes) = self.memory_range(job, taken, slot);
                let bytes = u32::try_from(bytes).expect("fewer sums than bytes of rows");
                Output::Memory { nsid: MEMORY_NSID, start, bytes }
            }
        }
    }

    /// Returns the output that a program on the host is asked for.
    pub(crate) fn wanted(&self) -> Wanted {
        match self {
            Self::Nothing => Wanted::Result,
            Self::Object { entry, .. } => Wanted::Chunks(entry.chunk_bytes),
            Self::Sums { .. } | Self::Areas { .. } => Wanted::Bytes,
        }
    }

    /// Returns the number of the first chunk that `taken` produces, and the distance to the next.
    pub(crate) fn numbers(&self, taken: &Taken) -> (u32, u32) {
        match (self, taken.run.part) {
            (Self::Object { rooms, .. }, Some(part)) if !rooms.is_empty() => (rooms[part], 1),
            _ => (taken.run.number, taken.run.stride),
        }
    }

    /// Returns the drive of a chunk of the output, by index in the array, if the object does not
    /// lie where its input does.
    pub(crate) fn drive(&self, taken: &Taken, number: u32) -> Option<DriveIndex> {
        let Self::Object { entry, moved: Some(moved), .. } = self else { return None };
        let member = match taken.run.part {
            Some(part) => moved[part].into(),
            None => layout::member(number, entry.offset, entry.member_count()),
        };
        Some(entry.members[member])
    }

    /// Returns the first byte and the number of bytes of memory that an execution over `taken`
    /// writes.
    pub(crate) fn memory_range(&self, job: &Job, taken: &Taken, slot: Slot) -> (u64, u64) {
        match self {
            Self::Nothing | Self::Object { .. } => (0, 0),
            Self::Sums { start, bytes } => {
                let rows = rows(job, taken.run.part.expect("rows come in parts"));
                (start + rows.start * bytes, (rows.end - rows.start) * bytes)
            }
            Self::Areas { bytes, count } => {
                let area = u64::from(slot.renewals) * u64::from(*count) + u64::from(slot.execution);
                (area * u64::from(*bytes), (*bytes).into())
            }
        }
    }

    /// Returns the memory of a drive that the job needs, bytes.
    pub(crate) fn memory_bytes(&self, job: &Job) -> u64 {
        match self {
            Self::Nothing | Self::Object { .. } => 0,
            Self::Sums { start, .. } => start + job.vector_bytes(),
            Self::Areas { bytes, count } => {
                u64::from(*bytes) * u64::from(*count) * u64::from(TRIES + 1)
            }
        }
    }
}

/// Returns the rows of a part.
pub(crate) fn rows(job: &Job, part: usize) -> std::ops::Range<u64> {
    let parts = job.parts(0).parts();
    let end = parts.get(part + 1).map_or(job.inputs[0].shape[0], |next| next.mark);
    parts[part].mark..end
}

/// An object that a run writes.
///
/// If drives of protected inputs are lost, it lies on the others, and the host computes and stores
/// all of it.
pub struct OutputObject {
    draft: Draft,
    rooms: Arc<[u32]>,
    /// Member of each part, if it does not lie where its input does.
    moved: Option<Arc<[u16]>>,
}

impl OutputObject {
    /// Begins the object `name` for the output of `job`; if all inputs are protected, on drives
    /// that are up and not among the `lost` ones.
    ///
    /// # Errors
    /// [`NameError::Exists`](csd_store::error::NameError::Exists); [`Error::InvalidJob`]
    /// when the job has no output to store; [`csd_store::Error::Array`] when no drive is left.
    pub async fn begin(
        array: &Array,
        name: &str,
        job: &Job,
        lost: &[String],
    ) -> Result<Self, Error> {
        let first = &job.inputs[0];
        let left = if job.can_lose_drives() { left(array, first, lost)? } else { None };
        let moved = left.as_deref().map(|left| moved(first, left).into());
        let mut shape = Shape {
            element: first.element,
            on: On::Kv,
            chunk_bytes: first.chunk_bytes,
            offset: Some(if left.is_some() { 0 } else { first.offset }),
            members: left.unwrap_or_else(|| first.members.clone()),
            whole: first.whole,
            protection: None,
            stored_unix_ms: None,
        };
        let mut rooms = Vec::new();
        match job.plan.writes {
            Writes::SameShape => {}
            Writes::Ranges => rooms = merge_rooms(job)?,
            Writes::PerItem { element } => {
                let items = first.chunk_bytes / job.plan.item_bytes;
                shape.element = element;
                shape.chunk_bytes = items * element_bytes(element);
                if shape.chunk_bytes < csd_store::layout::CHUNK_BYTES_VALUE_MIN
                    || shape.chunk_bytes > csd_store::layout::CHUNK_BYTES_MAX
                {
                    return Err(Error::InvalidJob(InvalidJob(format!(
                        "checksums of pages of {} bytes make chunks of {} bytes: use other pages",
                        job.plan.item_bytes, shape.chunk_bytes
                    ))));
                }
            }
            Writes::Nothing => {
                let why = format!("{} gives no array in place", job.name());
                return Err(Error::InvalidJob(InvalidJob(why)));
            }
        }
        let mut draft = Draft::begin(array, name, shape).await?;
        draft.write(array).await?;
        Ok(Self { draft, rooms: rooms.into(), moved })
    }

    pub(crate) fn target(&self) -> Destination {
        let (entry, rooms) = (Arc::new(self.draft.entry.clone()), Arc::clone(&self.rooms));
        Destination::Object { entry, rooms, moved: self.moved.clone() }
    }

    /// Returns true if it does not lie where its input does: only the host can store it.
    pub(crate) fn is_moved(&self) -> bool {
        self.moved.is_some()
    }

    /// Fills in the fields that are known only after the whole run.
    fn complete(&mut self, job: &Job, answer: &Answer) -> Result<(), Error> {
        let (first, entry) = (&job.inputs[0], &mut self.draft.entry);
        let members = entry.member_count();
        let moved = self.moved.as_deref();
        let place = |(index, part): (usize, &Part)| Part {
            member: moved.map_or(part.member, |moved| moved[index]),
            ..*part
        };
        let placed = |parts: &Parts| parts.parts().iter().enumerate().map(place).collect();
        let parts: Option<Vec<Part>> = first.parts.as_ref().map(placed);
        match job.plan.writes {
            Writes::Ranges => {
                let mut merged = parts.expect("a merge has parts");
                for (part, number) in merged.iter_mut().zip(self.rooms.iter()) {
                    (part.bytes, part.number) = (0, *number);
                }
                for &(part, elements) in &answer.parts {
                    merged[part].bytes = elements * entry.element.bytes() as u64;
                }
                entry.bytes = merged.iter().map(|part| part.bytes).sum();
                entry.parts = Parts::new(Kind::Range, entry.chunk_bytes, members, merged)?;
                entry.shape = vec![entry.elements()];
            }
            Writes::PerItem { element } => {
                let bytes = u64::from(element_bytes(element));
                let items = |input: u64| input.div_ceil(job.plan.item_bytes.into());
                entry.bytes = job.items() * bytes;
                entry.shape = vec![entry.elements()];
                let mut at = 0;
                let written = |part: &Part| {
                    let mark = at;
                    at += items(part.bytes);
                    Part { bytes: items(part.bytes) * bytes, mark, ..*part }
                };
                let parts = parts.map(|parts| parts.iter().map(written).collect());
                entry.parts = match parts {
                    Some(parts) => Parts::new(Kind::Rows, entry.chunk_bytes, members, parts)?,
                    None => None,
                };
            }
            Writes::SameShape | Writes::Nothing => {
                entry.bytes = first.bytes;
                entry.shape.clone_from(&first.shape);
                let kind = first.parts.as_ref().map(Parts::kind);
                entry.parts = match kind.zip(parts) {
                    Some((kind, parts)) => Parts::new(kind, entry.chunk_bytes, members, parts)?,
                    None => None,
                };
            }
        }
        Ok(())
    }

    /// Seals the object, which makes it visible.
    ///
    /// # Errors
    /// [`NameError::Overtaken`](csd_store::error::NameError::Overtaken), or the error that
    /// prevented a majority from agreeing.
    pub async fn seal(
        mut self,
        array: &Array,
        job: &Job,
        answer: &Answer,
    ) -> Result<Stored, Error> {
        match self.complete(job, answer) {
            Ok(()) => Ok(self.draft.seal(array).await?),
            Err(error) => {
                self.draft.abandon(array).await;
                Err(error)
            }
        }
    }

    /// Deletes the data written.
    pub async fn abandon(self, array: &Array) {
        self.draft.abandon(array).await;
    }
}

/// Returns the members of an input without those that are lost; `None` if none is.
fn left(array: &Array, first: &Entry, lost: &[String]) -> Result<Option<Vec<DriveIndex>>, Error> {
    let is_left = |member: &DriveIndex| {
        let slot = array.slot(*member);
        slot.is_some_and(|slot| slot.drive().is_ok() && !lost.contains(&slot.name))
    };
    let left: Vec<DriveIndex> = first.members.iter().copied().filter(is_left).collect();
    if left.is_empty() && !first.members.is_empty() {
        array.drive(first.members[0])?;
    }
    Ok((left.len() < first.members.len()).then_some(left))
}

/// Returns the member of each part, of the members that are `left`: the same drive, or any.
fn moved(first: &Entry, left: &[DriveIndex]) -> Vec<u16> {
    let place = |(index, part): (usize, &Part)| {
        let same = left.iter().position(|left| *left == first.members[usize::from(part.member)]);
        u16::try_from(same.unwrap_or(index % left.len())).expect("at most 1024 drives")
    };
    let parts = first.parts.iter().flat_map(|parts| parts.parts());
    parts.enumerate().map(place).collect()
}

fn element_bytes(element: ElementType) -> u32 {
    u32::try_from(element.bytes()).expect("at most 16")
}

/// Returns the first chunk number reserved for each part: a merge is at most as long as both
/// inputs.
fn merge_rooms(job: &Job) -> Result<Vec<u32>, Error> {
    let (mut rooms, mut next) = (Vec::new(), 0u32);
    for index in 0..job.parts(0).parts().len() {
        rooms.push(next);
        for input in 0..job.inputs.len() {
            let chunks = job.parts(input).part_chunks(index);
            let after = next.checked_add(chunks.end - chunks.start);
            let bytes = job.bytes();
            next = after.ok_or(csd_store::layout::Error::TooManyChunks { bytes })?;
        }
    }
    Ok(rooms)
}

/// Returns the first byte in which two sealed objects of one layout differ.
///
/// # Errors
/// An error of the drives.
pub async fn difference(array: &Array, a: &Entry, b: &Entry) -> Result<Option<u64>, Error> {
    if a.bytes != b.bytes {
        return Ok(Some(a.bytes.min(b.bytes)));
    }
    let (of_a, of_b): (Layout, Layout) = (a.layout(), b.layout());
    let mut before = 0u64;
    for chunk in 0..of_a.chunks() {
        let drive = array.drive(a.members[of_a.member(chunk)])?;
        let left = read_chunk(drive, a, chunk).await?;
        let drive = array.drive(b.members[of_b.member(chunk)])?;
        let right = read_chunk(drive, b, chunk).await?;
        if left[..] != right[..] {
            let at = left.iter().zip(right.iter()).position(|(a, b)| a != b);
            return Ok(Some(before + at.unwrap_or(left.len().min(right.len())) as u64));
        }
        before += left.len() as u64;
    }
    Ok(None)
}
