//! [`Tally`]: the answers of executions, combined, and the positions of their items in the whole.
//!
//! Performs no I/O. Invariant: a tally does not depend on the order in which answers are added.

use csd_kernels::kernel::{Answer, Position};
use csd_store::layout::Layout;

use crate::job::Job;
use crate::queue::Taken;

/// Combined answers of executions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// The combined answer.
    pub(crate) answer: Answer,
    /// Number of bytes of inputs.
    pub(crate) bytes: u64,
    /// Result of each part, where a unit is a part.
    pub(crate) parts: Vec<(usize, u64)>,
    /// Sums of the rows of each part, where the host needs them.
    pub(crate) sums: Vec<(usize, Vec<u8>)>,
}

impl Tally {
    /// Adds the answer of an execution over `taken`, whose items are at `position`.
    pub(crate) fn add(
        &mut self,
        job: &Job,
        taken: &Taken,
        position: &Position,
        mut answer: Answer,
    ) {
        self.bytes += job.run_bytes(&taken.run);
        if let Some(part) = taken.run.part.filter(|_| job.by_parts()) {
            self.parts.push((part, answer.result));
            if job.has_row_sums() {
                self.sums.push((part, std::mem::take(&mut answer.bytes)));
            }
        }
        let placed = job.kernel.place(position, answer);
        job.kernel.combine(&mut self.answer, placed);
    }
}

/// Returns the position of the items of `taken` among all items of the job.
pub(crate) fn position(job: &Job, taken: &Taken) -> Position {
    let (entry, item_bytes) = (&job.inputs[0], job.plan.item_bytes);
    let (every, items) = (entry.chunk_bytes / item_bytes, job.items());
    let Layout::Parts(parts) = entry.layout() else {
        let gap = u64::from(every) * u64::from(taken.run.stride - 1);
        let every_or_none = if gap == 0 { 0 } else { every };
        let first = u64::from(taken.run.first) * u64::from(every);
        return Position { first, every: every_or_none, gap, items };
    };
    let part = taken.run.part.expect("a run of a part");
    let before = &parts.parts()[..part];
    let before: u64 = before.iter().map(|part| part.bytes.div_ceil(item_bytes.into())).sum();
    let within = match job.by_parts() {
        true => 0,
        false => taken.run.first - parts.part_chunks(part).start,
    };
    let first = before + u64::from(within) * u64::from(every);
    Position { first, every: 0, gap: 0, items }
}
