//! [`Work`]: one pass of a version over memory.
#![allow(unsafe_code)]

use super::tables::Tables;

/// One pass: some rows of a matrix, times the sources, into their outputs.
///
/// The caller guarantees that all sources and outputs hold `bytes` bytes, a multiple of
/// [`super::BLOCK`], that no output overlaps anything else, and that the tables hold an entry for
/// every source and output.
pub(crate) struct Work<'a> {
    pub(super) tables: &'a Tables,
    /// Index of the table of the first source and the first output.
    pub(super) first: usize,
    pub(super) sources: &'a [*const u8],
    pub(super) outputs: &'a [*mut u8],
    pub(super) bytes: usize,
    /// True if the products are added to the outputs' old bytes.
    pub(super) is_added: bool,
}

/// Distance to bytes that are fetched into the caches before they are read.
const AHEAD: usize = 512;

/// Fetches the cache line some way behind this address: processors do not follow as many streams by
/// themselves as large codes read. Nothing is done on aarch64, where it has no stable intrinsic.
#[inline(always)]
pub(super) fn fetch_ahead(address: *const u8) {
    let ahead = address.wrapping_add(AHEAD);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction takes any address, also one without memory.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(ahead.cast());
    }
    let _ = ahead;
}

/// Defines `run` of a version from the functions `load`, `store`, `zero`, `split`, `table` and
/// `add` in its module: the processor features, the bytes of a vector, then vectors a turn for each
/// number of outputs.
macro_rules! run {
    ($features:literal, $bytes:literal, $($outputs:literal => $vectors:literal),+ $(,)?) => {
        /// Does a pass.
        ///
        /// # Safety
        /// As [`Work`](super::work::Work) says; the processor has the features.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn run(work: &super::work::Work<'_>) {
            const { $(assert!(super::BLOCK % ($vectors * $bytes) == 0);)+ }
            // SAFETY: the caller's guarantees.
            unsafe {
                match work.outputs.len() {
                    $($outputs => outputs::<$outputs, $vectors>(work),)+
                    count => unreachable!("{count} outputs in a pass"),
                }
            }
        }

        /// Does a pass for `G` outputs, `V` vectors of each a turn, whose sums stay in registers.
        #[target_feature(enable = $features)]
        unsafe fn outputs<const G: usize, const V: usize>(work: &super::work::Work<'_>) {
            let (tables, stride) = (tables(work.tables), work.tables.rows());
            // SAFETY: vectors lie within the sources, the outputs and the tables, as the caller
            // guarantees; loads and stores need no alignment.
            unsafe {
                for at in (0..work.bytes).step_by(V * $bytes) {
                    let mut sums = [[zero(); V]; G];
                    if work.is_added {
                        for (sums, output) in sums.iter_mut().zip(work.outputs) {
                            for (vector, sum) in sums.iter_mut().enumerate() {
                                *sum = load(output.add(at + vector * $bytes));
                            }
                        }
                    }
                    let mut column = tables.add(work.first);
                    for source in work.sources {
                        let mut inputs = [split(zero()); V];
                        for (vector, input) in inputs.iter_mut().enumerate() {
                            let source = source.wrapping_add(at + vector * $bytes);
                            *input = split(load(source));
                            super::work::fetch_ahead(source);
                        }
                        for (row, sums) in sums.iter_mut().enumerate() {
                            let table = table(column.add(row));
                            for (sum, input) in sums.iter_mut().zip(&inputs) {
                                *sum = add(*sum, *input, table);
                            }
                        }
                        column = column.wrapping_add(stride);
                    }
                    for (sums, output) in sums.iter().zip(work.outputs) {
                        for (vector, sum) in sums.iter().enumerate() {
                            store(output.add(at + vector * $bytes), *sum);
                        }
                    }
                }
            }
        }
    };
}
pub(super) use run;
