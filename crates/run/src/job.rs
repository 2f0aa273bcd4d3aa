//! [`Job`]: a kernel and the objects that it runs over, checked to fit each other.
//!
//! Performs no I/O. Invariant: data that one drive must process together lies on that drive.

use csd_kernels::kernel::{
    self, AnswerForm, Arguments, Description, Field, Input, Kernel, Layout, Pairing, Plan,
    Position, Unit,
};
use csd_nvme::vendor::execute::CHUNKS_MAX;
use csd_store::catalogue::{self, Entry};
use csd_store::layout::{Kind, Parts, Run};

use crate::error::InvalidJob;

/// Most bytes of one execution. Block sources count in whole MiB, rounded up for each piece, so
/// with units of 8 MiB scattered at worst this stays below the format's 256 MiB.
pub(crate) const BYTES_MAX: u32 = 192 << 20;

/// A kernel over objects.
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) kernel: &'static dyn Kernel,
    pub(crate) plan: Plan,
    /// The objects that the kernel reads.
    pub inputs: Vec<Entry>,
    /// Number of chunks of each drive, if only a sample is processed.
    sample: Option<u32>,
}

impl Job {
    /// Checks that a kernel can run over the objects, and makes a job of them.
    ///
    /// # Errors
    /// [`InvalidJob`] if the kernel does not accept them or its arguments, or their layouts do not
    /// match.
    pub fn new(
        kernel: &'static dyn Kernel,
        inputs: Vec<Entry>,
        arguments: &Arguments,
    ) -> Result<Self, InvalidJob> {
        let seen: Vec<Input<'_>> = inputs.iter().map(input).collect();
        let plan = kernel.plan(&seen, arguments).map_err(InvalidJob)?;
        if let [left, right] = &inputs[..] {
            check_pair(plan.pairing, left, right)?;
        }
        let job = Self { kernel, plan, inputs, sample: None };
        if let Unit::Part { remedy } = job.plan.unit {
            job.check_parts(remedy)?;
        }
        Ok(job)
    }

    /// Returns jobs that give the same answer and may be faster, each with at most this many
    /// executions of a drive at once.
    #[must_use]
    pub fn alternatives(&self, executions_max: u16) -> Vec<Self> {
        let all = self.kernel.alternatives(&self.plan.parameters, executions_max).into_iter();
        let replan = |parameters| self.kernel.replan(&self.plan, parameters);
        all.map(|parameters| Self { plan: replan(parameters), ..self.clone() }).collect()
    }

    /// Returns the job that leaves the division of the work to the drives, which change it while
    /// they work; `None` if the kernel has none.
    #[must_use]
    pub fn adaptive(&self) -> Option<Self> {
        let parameters = self.kernel.adaptive(&self.plan.parameters)?;
        Some(Self { plan: self.kernel.replan(&self.plan, parameters), ..self.clone() })
    }

    /// Describes the answer of a run.
    #[must_use]
    pub fn describe(&self, answer: &kernel::Answer) -> Description {
        self.kernel.describe(&self.plan.parameters, answer, self.items())
    }

    /// Returns the settings that the job runs with, in words.
    #[must_use]
    pub fn settings_in_words(&self) -> String {
        self.kernel.settings_in_words(&self.plan.parameters)
    }

    /// Returns the settings that the job runs with, to be shown with its answer.
    #[must_use]
    pub fn settings(&self) -> Vec<Field> {
        self.kernel.settings(&self.plan.parameters)
    }

    /// Returns the job over at most this many of each drive's first chunks. It gives no complete
    /// answer, but serves to predict the cost. Not for kernels that work on parts.
    #[must_use]
    pub fn sample(&self, chunks: u32) -> Self {
        assert!(!self.by_parts(), "parts are not cut");
        Self { sample: Some(chunks), ..self.clone() }
    }

    /// Returns true if a run can do without some drives: all inputs are protected.
    #[must_use]
    pub fn can_lose_drives(&self) -> bool {
        catalogue::are_protected(&self.inputs)
    }

    /// Returns the name of the kernel.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kernel.name()
    }

    /// Returns the names of the objects, for messages.
    pub(crate) fn names(&self) -> String {
        let names: Vec<_> = self.inputs.iter().map(|entry| entry.name.as_str()).collect();
        names.join(" or ")
    }

    /// Returns the parameters of an execution over items at `position`.
    pub(crate) fn parameters_at(&self, position: &Position) -> Vec<u8> {
        self.kernel.parameters_at(&self.plan.parameters, position)
    }

    /// Returns true if a unit of work is a part; else it is a chunk.
    pub(crate) fn by_parts(&self) -> bool {
        matches!(self.plan.unit, Unit::Part { .. })
    }

    /// Returns true if an execution answers with sums of rows, and needs a vector.
    pub(crate) fn has_row_sums(&self) -> bool {
        matches!(self.plan.answer, AnswerForm::RowSums { .. })
    }

    /// Returns the size of the vector that every execution reads, bytes; 0 if there is none.
    pub(crate) fn vector_bytes(&self) -> u64 {
        match self.plan.answer {
            AnswerForm::RowSums { vector_bytes, .. } => vector_bytes,
            AnswerForm::Result | AnswerForm::Bytes(_) => 0,
        }
    }

    /// Returns the parts of input `index` to process.
    pub(crate) fn parts(&self, index: usize) -> &Parts {
        self.inputs[index].parts.as_ref().expect("checked when the job was made")
    }

    /// Returns the units of every member.
    pub(crate) fn piles(&self) -> Vec<Vec<Run>> {
        let first = &self.inputs[0];
        if !self.by_parts() {
            let layout = first.layout();
            let runs = (0..first.members.len()).map(|member| layout.runs(member));
            return match self.sample {
                None => runs.collect(),
                Some(most) => runs.map(|runs| head(runs, most)).collect(),
            };
        }
        let mut piles = vec![Vec::new(); first.members.len()];
        for (index, part) in self.parts(0).content().iter().enumerate() {
            if self.part_bytes(index) > 0 {
                let number = u32::try_from(index).expect("fewer parts than chunks");
                let locals = number..number + 1;
                let run = Run { locals, first: number, number, stride: 1, part: Some(index) };
                piles[usize::from(part.member)].push(run);
            }
        }
        piles
    }

    /// Returns the largest number of units of one execution.
    pub(crate) fn most(&self) -> u32 {
        if self.by_parts() {
            return 1;
        }
        let inputs = u32::try_from(self.inputs.len()).expect("one or two");
        let chunk_bytes = self.inputs[0].chunk_bytes;
        let most = (CHUNKS_MAX.min(BYTES_MAX / chunk_bytes) / inputs).max(1);
        let wanted = self.plan.execution_bytes.map(|bytes| bytes.div_ceil(chunk_bytes.into()));
        wanted.and_then(|wanted| u32::try_from(wanted).ok()).map_or(most, |wanted| most.min(wanted))
    }

    /// Returns the number of executions of one drive in flight at once.
    pub(crate) fn in_flight(&self) -> u32 {
        self.plan.in_flight.map_or(4, u32::from)
    }

    /// Returns the number of elements that the kernel processes in one step.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.bytes() / self.inputs[0].element.bytes() as u64
    }

    /// Returns the number of bytes that the kernel reads in one step.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        if self.sample.is_some() {
            let piles = self.piles();
            return piles.into_iter().flatten().map(|run| self.run_bytes(&run)).sum();
        }
        let bytes = |entry: &Entry| match &entry.parts {
            Some(parts) if self.by_parts() => parts.content().iter().map(|part| part.bytes).sum(),
            _ => entry.bytes,
        };
        self.inputs.iter().map(bytes).sum()
    }

    /// Returns the size of all inputs that a run of units covers, bytes.
    pub(crate) fn run_bytes(&self, run: &Run) -> u64 {
        if let Some(part) = run.part.filter(|_| self.by_parts()) {
            return self.part_bytes(part);
        }
        self.inputs.iter().map(|entry| entry_bytes(entry, run)).sum()
    }

    /// Returns the number of items of the first input.
    pub(crate) fn items(&self) -> u64 {
        let items = |bytes: u64| bytes.div_ceil(self.plan.item_bytes.into());
        match &self.inputs[0].parts {
            Some(parts) => parts.parts().iter().map(|part| items(part.bytes)).sum(),
            None => items(self.inputs[0].bytes),
        }
    }

    fn part_bytes(&self, part: usize) -> u64 {
        (0..self.inputs.len()).map(|input| self.parts(input).parts()[part].bytes).sum()
    }

    /// Checks that one execution can process each part whole.
    fn check_parts(&self, remedy: &str) -> Result<(), InvalidJob> {
        for index in 0..self.parts(0).content().len() {
            let chunks = (0..self.inputs.len()).map(|input| {
                let chunks = self.parts(input).part_chunks(index);
                u64::from(chunks.end - chunks.start)
            });
            let chunks: u64 = chunks.sum();
            let most = u64::from(CHUNKS_MAX.min(BYTES_MAX / self.inputs[0].chunk_bytes));
            if chunks > most {
                return Err(InvalidJob(format!(
                    "part {index} has {chunks} chunks, and an execution takes {most}: {remedy}"
                )));
            }
        }
        Ok(())
    }
}

/// Returns the first `most` chunks of runs.
fn head(runs: Vec<Run>, mut most: u32) -> Vec<Run> {
    let cut = |mut run: Run| {
        run.locals.end = run.locals.end.min(run.locals.start + most);
        most -= run.locals.end - run.locals.start;
        run
    };
    runs.into_iter().map(cut).filter(|run| !run.locals.is_empty()).collect()
}

/// Returns the size of the chunks of a run, bytes.
pub(crate) fn entry_bytes(entry: &Entry, run: &Run) -> u64 {
    let count = run.locals.end - run.locals.start;
    let last = run.first + (count - 1) * run.stride;
    let full = u64::from(count - 1) * u64::from(entry.chunk_bytes);
    full + u64::from(entry.layout().chunk_len(last))
}

/// Returns an object as kernels see it.
fn input(entry: &Entry) -> Input<'_> {
    let parts = entry.parts.as_ref();
    let layout = match parts.map(Parts::kind) {
        // Its bytes have no order that a kernel knows of.
        None | Some(Kind::Table) => Layout::Chunks,
        Some(Kind::Range) => Layout::Ranges,
        Some(Kind::Rows) => Layout::Rows,
        Some(Kind::Graph) => {
            let degrees = parts.and_then(|parts| parts.parts().last());
            Layout::Graph { nodes: degrees.map_or(0, |degrees| degrees.mark) }
        }
    };
    Input {
        name: &entry.name,
        element: entry.element,
        elements: entry.elements(),
        shape: &entry.shape,
        chunk_bytes: entry.chunk_bytes,
        layout,
    }
}

/// Checks that two inputs have the relation that the kernel needs.
fn check_pair(pairing: Pairing, left: &Entry, right: &Entry) -> Result<(), InvalidJob> {
    side_by_side(left, right)?;
    let marks = |entry: &Entry| -> Option<Vec<_>> {
        let parts = entry.parts.as_ref()?.parts().iter();
        Some(parts.map(|part| (part.member, part.mark)).collect())
    };
    match pairing {
        Pairing::Elements if left.layout() != right.layout() => {
            Err(mislaid(left, right, "are not cut alike"))
        }
        Pairing::Ranges if marks(left) != marks(right) => {
            Err(mislaid(left, right, "are cut at different values"))
        }
        Pairing::None | Pairing::Elements | Pairing::Ranges => Ok(()),
    }
}

pub(crate) fn side_by_side(left: &Entry, right: &Entry) -> Result<(), InvalidJob> {
    if left.members != right.members {
        return Err(mislaid(left, right, "are not on the same drives"));
    }
    if left.chunk_bytes != right.chunk_bytes {
        return Err(mislaid(left, right, "have chunks of different sizes"));
    }
    if left.offset != right.offset {
        return Err(mislaid(left, right, "begin on different drives"));
    }
    Ok(())
}

fn mislaid(left: &Entry, right: &Entry, how: &str) -> InvalidJob {
    InvalidJob(format!(
        "{:?} and {:?} {how}: put {:?} again with --align {:?}",
        left.name, right.name, right.name, left.name
    ))
}
