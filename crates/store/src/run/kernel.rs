//! What a run does with a kernel: its parameters, its work on the host, and its answers added up.
//!
//! Never: I/O. Invariant: the host's answer to a unit is the drive's, bit for bit.

use csd_kernels::array_merge::{ArrayMerge, Piece};
use csd_kernels::count::Count;
use csd_kernels::page_rank::{Dense, Form, Sparse};
use csd_kernels::vector_add::VectorAdd;
use csd_kernels::verify::{self, Digest, Spacing, Verify, Whole};
use csd_kernels::{array_merge, vector_add};
use csd_reactor::Buffer;

use super::job::{Job, Kernel};
use super::queue::Taken;
use crate::layout::Layout;

/// Answers added up, in any order.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Sum of results.
    pub(super) value: u64,
    /// Bytes of inputs.
    pub(super) bytes: u64,
    /// Linear part of the digest of all checksums.
    digest: u32,
    /// Result of each part.
    pub(super) parts: Vec<(usize, u64)>,
    /// Bytes that each part gave, where they come to the host.
    pub(super) sums: Vec<(usize, Vec<u8>)>,
}

impl Tally {
    /// A tally of this many bytes of inputs.
    pub(super) fn of_bytes(bytes: u64) -> Self {
        Self { bytes, ..Self::default() }
    }

    /// Adds another.
    pub(super) fn add(&mut self, other: Self) {
        self.value += other.value;
        self.bytes += other.bytes;
        self.digest ^= other.digest;
        self.parts.extend(other.parts);
        self.sums.extend(other.sums);
    }

    /// Digest of all checksums of `job`.
    pub(super) fn digest(&self, job: &Job) -> Option<u32> {
        let Kernel::Verify(plan) = job.kernel else { return None };
        let mut whole = Whole::new(pages(job, plan.page_bytes()));
        whole.join(self.digest);
        Some(whole.value())
    }
}

/// Pages of the job's object.
pub(super) fn pages(job: &Job, page_bytes: u32) -> u64 {
    let pages = |bytes: u64| bytes.div_ceil(page_bytes.into());
    match &job.inputs[0].parts {
        Some(parts) => parts.parts().iter().map(|part| pages(part.bytes)).sum(),
        None => pages(job.inputs[0].bytes),
    }
}

/// Where the pages of `taken` lie among all: the first, and how they are spaced.
fn lie(job: &Job, taken: &Taken, page_bytes: u32) -> (u64, Spacing) {
    let entry = &job.inputs[0];
    let every = entry.chunk_bytes / page_bytes;
    let Layout::Parts(parts) = entry.layout() else {
        let gap = u64::from(every) * u64::from(taken.run.stride - 1);
        let spacing = if gap == 0 { Spacing::default() } else { Spacing { every, gap } };
        return (u64::from(taken.run.first) * u64::from(every), spacing);
    };
    let part = taken.run.part.expect("a run of a part");
    let before = &parts.parts()[..part];
    let before: u64 = before.iter().map(|part| part.bytes.div_ceil(page_bytes.into())).sum();
    let within = taken.run.first - parts.part_chunks(part).start;
    (before + u64::from(within) * u64::from(every), Spacing::default())
}

impl Job {
    /// The parameters of an execution over `taken`.
    pub(super) fn parameters(&self, taken: &Taken) -> Vec<u8> {
        match self.kernel {
            Kernel::Count(parameters) => parameters.encode(),
            Kernel::VectorAdd(element) => vector_add::Parameters { element }.encode(),
            Kernel::ArrayMerge(element) => array_merge::Parameters { element }.encode(),
            Kernel::Verify(plan) => {
                let spacing = lie(self, taken, plan.page_bytes()).1;
                verify::Parameters { plan, spacing }.encode()
            }
            Kernel::PageRank(parameters) => parameters.encode(),
        }
    }

    /// Adds the result over `taken` to a tally; `sums` are what came as bytes.
    pub(super) fn absorb(&self, tally: &mut Tally, taken: &Taken, result: u64, sums: Vec<u8>) {
        match self.kernel {
            Kernel::Count(_) | Kernel::VectorAdd(_) => tally.value += result,
            Kernel::ArrayMerge(_) => {
                tally.value += result;
                tally.parts.push((taken.run.part.expect("a part"), result));
            }
            Kernel::Verify(plan) => {
                tally.value += result >> 32;
                let (first, spacing) = lie(self, taken, plan.page_bytes());
                let (pages, every) = (result >> 32, u64::from(spacing.every));
                let gaps = pages.saturating_sub(1).checked_div(every).unwrap_or(0);
                let mut whole = Whole::new(self::pages(self, plan.page_bytes()));
                let digest = u32::try_from(result & 0xFFFF_FFFF).expect("a dword");
                if pages > 0 {
                    whole.add(first, pages + gaps * spacing.gap, digest);
                }
                tally.digest ^= whole.linear();
            }
            Kernel::PageRank(_) => {
                tally.value += result;
                tally.sums.push((taken.run.part.expect("a part"), sums));
            }
        }
    }

    /// Works on `taken`, of each input of which these are the chunks; the result, and the bytes
    /// that the kernel writes.
    pub(super) fn compute(
        &self,
        inputs: &[Vec<Buffer>],
        vector: &Vector,
    ) -> Result<(u64, Vec<u8>), String> {
        let words = |error: &dyn std::fmt::Display| error.to_string();
        match self.kernel {
            Kernel::Count(parameters) => {
                let mut count = Count::new(parameters);
                for chunk in &inputs[0] {
                    count.feed(chunk).map_err(|error| words(&error))?;
                }
                Ok((count.result(), Vec::new()))
            }
            Kernel::VectorAdd(element) => {
                let mut add = VectorAdd::new(vector_add::Parameters { element });
                let mut sums = Vec::new();
                for (left, right) in inputs[0].iter().zip(&inputs[1]) {
                    let at = sums.len();
                    sums.resize(at + left.len(), 0);
                    add.feed(left, right, &mut sums[at..]).map_err(|error| words(&error))?;
                }
                Ok((add.elements(), sums))
            }
            Kernel::ArrayMerge(element) => {
                let merge = ArrayMerge::new(array_merge::Parameters { element });
                let merged = merge_all(merge, &inputs[0], &inputs[1])?;
                Ok(((merged.len() / element.bytes()) as u64, merged))
            }
            Kernel::Verify(plan) => {
                let (mut verify, mut checksums) = (Verify::new(plan), Vec::new());
                inputs[0].iter().for_each(|chunk| verify.feed(chunk, &mut checksums));
                verify.finish(&mut checksums);
                let mut digest = Digest::new(Spacing::default());
                digest.push(&checksums);
                let bytes = checksums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
                Ok((u64::from(digest.value()) | verify.pages() << 32, bytes))
            }
            Kernel::PageRank(parameters) => multiply(parameters.form, &inputs[0], vector),
        }
    }
}

/// The vector of a step of page rank.
#[derive(Clone, Debug, Default)]
pub(super) struct Vector {
    pub(super) dense: Vec<f32>,
    pub(super) sparse: Vec<f64>,
}

impl Vector {
    /// Its bytes, as drives take it.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let dense = self.dense.iter().flat_map(|value| value.to_le_bytes());
        let sparse = self.sparse.iter().flat_map(|value| value.to_le_bytes());
        dense.chain(sparse).collect()
    }
}

fn multiply(form: Form, rows: &[Buffer], vector: &Vector) -> Result<(u64, Vec<u8>), String> {
    if form == Form::Dense {
        let (mut product, mut sums) = (Dense::new(&vector.dense), Vec::new());
        for chunk in rows {
            product.feed(chunk, &mut sums).map_err(|error| error.to_string())?;
        }
        product.finish().map_err(|error| error.to_string())?;
        return Ok((product.rows(), sums.iter().flat_map(|sum| sum.to_le_bytes()).collect()));
    }
    let (mut product, mut sums) = (Sparse::new(&vector.sparse), Vec::new());
    for chunk in rows {
        product.feed(chunk, &mut sums).map_err(|error| error.to_string())?;
    }
    product.finish().map_err(|error| error.to_string())?;
    Ok((product.rows(), sums.iter().flat_map(|sum| sum.to_le_bytes()).collect()))
}

/// Merges two lists of chunks.
fn merge_all(mut merge: ArrayMerge, left: &[Buffer], right: &[Buffer]) -> Result<Vec<u8>, String> {
    let mut merged = Vec::new();
    let mut at = [(0, 0); 2];
    loop {
        let [left, right] = [(left, at[0]), (right, at[1])].map(|(chunks, (chunk, byte))| {
            let bytes = chunks.get(chunk).map_or(&[][..], |chunk| &chunk[byte..]);
            Piece { bytes, last: chunk + 1 >= chunks.len() }
        });
        let lengths = [left.bytes.len(), right.bytes.len()];
        let ends = left.last && right.last;
        let taken = merge.feed(left, right, |bytes| merged.extend_from_slice(bytes));
        let taken = taken.map_err(|error| error.to_string())?;
        let taken = [taken.left, taken.right];
        if ends && taken == lengths {
            return Ok(merged);
        }
        for ((at, taken), length) in at.iter_mut().zip(taken).zip(lengths) {
            at.1 += taken;
            if taken == length && length > 0 {
                *at = (at.0 + 1, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use csd_kernels::Numeric;

    use super::*;

    #[test]
    fn lists_of_chunks_merge_as_the_whole() {
        let bytes = |values: Vec<i32>| -> Vec<u8> {
            values.into_iter().flat_map(i32::to_le_bytes).collect()
        };
        let left = bytes((0..5000).map(|i| i * 3).collect());
        let right = bytes((0..1000).map(|i| i * 7 + 9000).collect());
        let expected = array_merge::merge(Numeric::I32, &left, &right).unwrap();
        let chunks = |bytes: &[u8], size: usize| -> Vec<Buffer> {
            bytes.chunks(size).map(Buffer::from_slice).collect()
        };
        for size in [4, 1000, 100_000] {
            let merge = || ArrayMerge::new(array_merge::Parameters { element: Numeric::I32 });
            let merged = merge_all(merge(), &chunks(&left, size), &chunks(&right, 4096));
            assert_eq!(merged.as_ref(), Ok(&expected), "{size}");
            assert_eq!(merge_all(merge(), &[], &chunks(&right, size)), Ok(right.clone()));
            assert_eq!(merge_all(merge(), &[], &[]), Ok(Vec::new()));
        }
    }
}
