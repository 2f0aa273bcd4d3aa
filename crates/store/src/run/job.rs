//! [`Job`]: a kernel and the objects that it runs over, checked to fit each other.
//!
//! Never: I/O. Invariant: what a job's drives are to work on together lies together.

use csd_kernels::page_rank::Form;
use csd_kernels::verify::Plan;
use csd_kernels::{
    ElementType, Numeric, Scalar, array_merge, count, page_rank, vector_add, verify,
};
use csd_nvme::execute::CHUNKS_MAX;

use crate::catalogue::Entry;
use crate::error::Unfit;
use crate::layout::{Kind, Parts, Run};

/// Most bytes of one execution. Block sources are counted in begun MiB each, so with units of
/// 8 MiB scattered at worst this stays below the format's 256 MiB.
pub(super) const BYTES_MAX: u32 = 192 << 20;

/// What to compute.
#[derive(Clone, Debug)]
pub struct Job {
    pub(super) kernel: Kernel,
    /// The objects that the kernel reads.
    pub inputs: Vec<Entry>,
    /// Most chunks of each drive, when only a sample is worked on.
    sample: Option<u32>,
}

/// A kernel with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kernel {
    Count(count::Parameters),
    VectorAdd(Numeric),
    ArrayMerge(Numeric),
    Verify(Plan),
    PageRank(page_rank::Parameters),
}

impl Job {
    /// Count the elements of `entry` that equal the number `value`.
    ///
    /// # Errors
    /// [`Unfit`] when `value` is not of the object's type.
    pub fn count(entry: Entry, value: &str) -> Result<Self, Unfit> {
        let scalar = Scalar::parse(entry.element, value).map_err(|error| {
            Unfit(format!("--equal {value}: {error} (object {:?})", entry.name))
        })?;
        let kernel = Kernel::Count(count::Parameters { value: scalar });
        Ok(Self { kernel, inputs: vec![entry], sample: None })
    }

    /// The sums of the elements of two objects.
    ///
    /// # Errors
    /// [`Unfit`] when they differ in type, length or place.
    pub fn vector_add(left: Entry, right: Entry) -> Result<Self, Unfit> {
        let element = one_type(&left, &right)?;
        if left.bytes != right.bytes {
            let (a, b) = (left.elements(), right.elements());
            return Err(Unfit(format!(
                "{:?} has {a} elements and {:?} has {b}: vector-add needs equally many",
                left.name, right.name
            )));
        }
        side_by_side(&left, &right)?;
        if left.layout() != right.layout() {
            return Err(mislaid(&left, &right, "are not cut alike"));
        }
        Ok(Self { kernel: Kernel::VectorAdd(element), inputs: vec![left, right], sample: None })
    }

    /// Two sorted objects as one, every value once.
    ///
    /// # Errors
    /// [`Unfit`] when they differ in type, are not cut by ranges of values, or not by the same.
    pub fn array_merge(left: Entry, right: Entry) -> Result<Self, Unfit> {
        let element = one_type(&left, &right)?;
        let [a, b] = [&left, &right].map(|entry| {
            let range = |parts: &&Parts| parts.kind() == Kind::Range;
            entry.parts.as_ref().filter(range).ok_or_else(|| {
                Unfit(format!(
                    "{:?} is not cut by ranges of its values: put it with --layout range, or \
                     with --align to the other input",
                    entry.name
                ))
            })
        });
        let (a, b) = (a?, b?);
        side_by_side(&left, &right)?;
        let marks = |parts: &Parts| parts.parts().iter().map(|p| (p.member, p.mark)).collect();
        let (of_left, of_right): (Vec<_>, Vec<_>) = (marks(a), marks(b));
        if of_left != of_right {
            return Err(mislaid(&left, &right, "are cut at different values"));
        }
        let kernel = Kernel::ArrayMerge(element);
        let job = Self { kernel, inputs: vec![left, right], sample: None };
        job.check_parts()?;
        Ok(job)
    }

    /// The checksums of an object's pages.
    ///
    /// # Errors
    /// [`Unfit`] when pages do not divide chunks.
    pub fn verify(entry: Entry, plan: Plan) -> Result<Self, Unfit> {
        if !entry.chunk_bytes.is_multiple_of(plan.page_bytes()) {
            return Err(Unfit(format!(
                "pages of {} bytes do not divide the chunks of {:?}, which have {} bytes: use a \
                 power of two",
                plan.page_bytes(),
                entry.name,
                entry.chunk_bytes
            )));
        }
        Ok(Self { kernel: Kernel::Verify(plan), inputs: vec![entry], sample: None })
    }

    /// Products of an object's rows with a vector, for page rank.
    ///
    /// # Errors
    /// [`Unfit`] when it is neither a matrix nor a graph, or has no node.
    pub fn page_rank(entry: Entry) -> Result<Self, Unfit> {
        let name = entry.name.clone();
        let parameters = match entry.parts.as_ref().map(Parts::kind) {
            Some(Kind::Graph) => {
                let columns = entry.parts.as_ref().and_then(|parts| parts.parts().last());
                let columns = columns.map_or(0, |degrees| degrees.mark);
                page_rank::Parameters { form: Form::Sparse, columns }
            }
            Some(Kind::Rows) if entry.element == ElementType::F32 => match entry.shape[..] {
                [rows, columns] if rows == columns => {
                    page_rank::Parameters { form: Form::Dense, columns }
                }
                _ => {
                    let shape = entry.shape.iter().map(u64::to_string).collect::<Vec<_>>();
                    let shape = shape.join(" x ");
                    return Err(Unfit(format!("{name:?} is {shape}: page rank needs a square")));
                }
            },
            Some(Kind::Rows) => {
                let element = entry.element;
                return Err(Unfit(format!("{name:?} is of type {element}: dense rows are f32")));
            }
            _ => {
                return Err(Unfit(format!(
                    "the rows of {name:?} may be split across drives: put a matrix with --layout \
                     rows, or a list of edges with --graph"
                )));
            }
        };
        if parameters.columns == 0 {
            return Err(Unfit(format!("{name:?} has no node: there is nothing to rank")));
        }
        let kernel = Kernel::PageRank(parameters);
        let job = Self { kernel, inputs: vec![entry], sample: None };
        job.check_parts()?;
        Ok(job)
    }

    /// The same over at most this many of each drive's first chunks, which gives no whole answer
    /// but says what the whole may cost. Not of kernels that work on parts.
    #[must_use]
    pub fn sample(&self, chunks: u32) -> Self {
        assert!(!self.by_parts(), "parts are not cut");
        Self { sample: Some(chunks), ..self.clone() }
    }

    /// Name of the kernel.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.kernel {
            Kernel::Count(_) => count::NAME,
            Kernel::VectorAdd(_) => vector_add::NAME,
            Kernel::ArrayMerge(_) => array_merge::NAME,
            Kernel::Verify(_) => verify::NAME,
            Kernel::PageRank(_) => page_rank::NAME,
        }
    }

    /// The kernel's program identifier.
    pub(super) fn program(&self) -> u64 {
        match self.kernel {
            Kernel::Count(_) => count::PROGRAM_ID,
            Kernel::VectorAdd(_) => vector_add::PROGRAM_ID,
            Kernel::ArrayMerge(_) => array_merge::PROGRAM_ID,
            Kernel::Verify(_) => verify::PROGRAM_ID,
            Kernel::PageRank(_) => page_rank::PROGRAM_ID,
        }
    }

    /// Whether a unit of its work is a part; else it is a chunk.
    pub(super) fn by_parts(&self) -> bool {
        matches!(self.kernel, Kernel::ArrayMerge(_) | Kernel::PageRank(_))
    }

    /// Parts of input `index` that are worked on.
    pub(super) fn parts(&self, index: usize) -> &Parts {
        self.inputs[index].parts.as_ref().expect("checked when the job was made")
    }

    /// Units of every member.
    pub(super) fn piles(&self) -> Vec<Vec<Run>> {
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
            let bytes: u64 =
                (0..self.inputs.len()).map(|input| self.parts(input).parts()[index].bytes).sum();
            if bytes > 0 {
                let number = u32::try_from(index).expect("fewer parts than chunks");
                let locals = number..number + 1;
                let run = Run { locals, first: number, number, stride: 1, part: Some(index) };
                piles[usize::from(part.member)].push(run);
            }
        }
        piles
    }

    /// Most units of one execution.
    pub(super) fn most(&self) -> u32 {
        if self.by_parts() {
            return 1;
        }
        let inputs = u32::try_from(self.inputs.len()).expect("one or two");
        let most = (CHUNKS_MAX.min(BYTES_MAX / self.inputs[0].chunk_bytes) / inputs).max(1);
        match self.kernel {
            Kernel::Verify(plan) => {
                let pages = self.inputs[0].chunk_bytes / plan.page_bytes();
                match plan.pages_per_unit() {
                    1 => most,
                    wanted => most.min(wanted.div_ceil(pages)),
                }
            }
            _ => most,
        }
    }

    /// Executions of one drive in flight at once.
    pub(super) fn in_flight(&self) -> u32 {
        match self.kernel {
            Kernel::Verify(plan) if plan.units() > 1 => plan.units().min(64).into(),
            _ => 4,
        }
    }

    /// Elements that the kernel looks at, in one step.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.bytes() / self.inputs[0].element.bytes() as u64
    }

    /// Bytes that the kernel reads, in one step.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        if self.sample.is_some() {
            let piles = self.piles();
            return piles.into_iter().flatten().map(|run| super::drives::bytes(self, &run)).sum();
        }
        let bytes = |entry: &Entry| match &entry.parts {
            Some(parts) if self.by_parts() => parts.content().iter().map(|part| part.bytes).sum(),
            _ => entry.bytes,
        };
        self.inputs.iter().map(bytes).sum()
    }

    /// An execution takes a part whole.
    fn check_parts(&self) -> Result<(), Unfit> {
        for index in 0..self.parts(0).content().len() {
            let chunks = (0..self.inputs.len()).map(|input| {
                let chunks = self.parts(input).part_chunks(index);
                u64::from(chunks.end - chunks.start)
            });
            let chunks: u64 = chunks.sum();
            let most = u64::from(CHUNKS_MAX.min(BYTES_MAX / self.inputs[0].chunk_bytes));
            if chunks > most {
                let what = match self.kernel {
                    Kernel::ArrayMerge(_) => {
                        "align the denser input first (put it with --layout range, then the other \
                         with --align), or use larger chunks; equal elements stay together"
                    }
                    _ => "put it with larger chunks: a row is never cut",
                };
                return Err(Unfit(format!(
                    "part {index} has {chunks} chunks, and an execution takes {most}: {what}"
                )));
            }
        }
        Ok(())
    }
}

/// The first `most` chunks of runs.
fn head(runs: Vec<Run>, mut most: u32) -> Vec<Run> {
    let cut = |mut run: Run| {
        run.locals.end = run.locals.end.min(run.locals.start + most);
        most -= run.locals.end - run.locals.start;
        run
    };
    runs.into_iter().map(cut).filter(|run| !run.locals.is_empty()).collect()
}

fn one_type(left: &Entry, right: &Entry) -> Result<Numeric, Unfit> {
    if left.element != right.element {
        return Err(Unfit(format!(
            "{:?} is of type {} and {:?} of type {}: put one of them again with the other's type",
            left.name, left.element, right.name, right.element
        )));
    }
    Numeric::try_from(left.element).map_err(|error| Unfit(format!("{:?}: {error}", left.name)))
}

pub(super) fn side_by_side(left: &Entry, right: &Entry) -> Result<(), Unfit> {
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

fn mislaid(left: &Entry, right: &Entry, how: &str) -> Unfit {
    Unfit(format!(
        "{:?} and {:?} {how}: put {:?} again with --align {:?}",
        left.name, right.name, right.name, left.name
    ))
}
