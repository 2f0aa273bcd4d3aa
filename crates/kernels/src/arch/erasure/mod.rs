//! Versions of the erasure code: a matrix of coefficients times pieces, in bounded passes.
//!
//! Products come from tables of 16 entries in a register, one for each half of a byte (Plank,
//! Greenan, Miller, "Screaming fast Galois field arithmetic using Intel SIMD instructions", 2013),
//! or from the instructions of GFNI.
//!
//! A pass computes as many outputs as a version can sum up in registers. If one pass takes all
//! outputs, it reads the pieces directly, from memory once. Otherwise blocks of all pieces are
//! copied next to each other and every pass reads the copies: pieces often lie whole powers of two
//! apart, where the caches hold no more than some lines of equal addresses, and the second pass
//! would read them from memory again. Copies of short pieces are padded with zeros.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx2_gfni;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_gfni;
#[cfg(target_arch = "x86_64")]
mod bits256;
#[cfg(target_arch = "x86_64")]
mod bits512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
mod tables;
mod work;

use std::ops::Range;
use std::sync::LazyLock;

pub(crate) use tables::Tables;
use work::Work;

use super::Version;

/// Greatest number of sources of a matrix.
pub(crate) const SOURCES_MAX: usize = 32;
/// Greatest number of outputs of a matrix.
pub(crate) const OUTPUTS_MAX: usize = 16;
/// Bytes of a piece that are copied at a time. Passes take whole blocks.
const BLOCK: usize = 256;

/// Bytes of a cache line.
const LINE: usize = 64;

/// The function of a version.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    /// Greatest number of outputs of a pass.
    outputs: usize,
    run: unsafe fn(&Work<'_>),
}

/// Blocks of pieces, copied next to each other.
#[repr(align(64))]
struct Copies<const N: usize>([[u8; BLOCK]; N]);

versions! {
    versions, best: Functions;
    x86_64:
        "avx512+gfni" ["avx512f", "avx512bw", "gfni"] Functions::new(16, avx512_gfni::run),
        "avx2+gfni" ["avx2", "gfni"] Functions::new(6, avx2_gfni::run),
        "avx512" ["avx512f", "avx512bw"] Functions::new(8, avx512::run),
        "avx2" ["avx2"] Functions::new(4, avx2::run);
    aarch64: "neon" ["neon"] Functions::new(8, neon::run);
    portable: Functions::new(OUTPUTS_MAX, portable::run);
}

impl Functions {
    const fn new(outputs: usize, run: unsafe fn(&Work<'_>)) -> Self {
        Self { outputs, run }
    }

    /// Writes the products of a matrix and its sources, padded with zeros.
    pub(crate) fn set(self, tables: &Tables, sources: &[&[u8]], outputs: &mut [&mut [u8]]) {
        let passes =
            Passes { functions: self, tables, columns: 0..tables.columns(), is_added: false };
        passes.run(sources, outputs);
    }

    /// Adds the products of one column to the outputs.
    pub(crate) fn add(
        self,
        tables: &Tables,
        column: usize,
        source: &[u8],
        outputs: &mut [&mut [u8]],
    ) {
        let columns = column..column + 1;
        Passes { functions: self, tables, columns, is_added: true }.run(&[source], outputs);
    }
}

/// All passes of a call.
struct Passes<'a> {
    functions: Functions,
    tables: &'a Tables,
    columns: Range<usize>,
    is_added: bool,
}

impl Passes<'_> {
    fn run(&self, sources: &[&[u8]], outputs: &mut [&mut [u8]]) {
        assert!(sources.len() == self.columns.len() && self.columns.end <= self.tables.columns());
        assert!(outputs.len() == self.tables.rows(), "another number of outputs");
        let lengths = || sources.iter().map(|source| source.len());
        let rooms: (usize, usize) =
            outputs.iter().fold((usize::MAX, 0), |(least, most), output| {
                (least.min(output.len()), most.max(output.len()))
            });
        let end = lengths().max().unwrap_or(0).min(rooms.1);
        let whole = lengths().min().unwrap_or(0).min(rooms.0) / BLOCK * BLOCK;
        if outputs.len() <= self.functions.outputs {
            self.direct(sources, outputs, whole);
        } else {
            self.copied(sources, outputs, whole);
        }
        self.padded(sources, outputs, whole..end);
        if !self.is_added {
            for output in outputs {
                let written = end.min(output.len());
                output[written..].fill(0);
            }
        }
    }

    /// Reads `bytes` whole blocks of bytes where they are, in one pass.
    fn direct(&self, sources: &[&[u8]], outputs: &mut [&mut [u8]], bytes: usize) {
        let mut from = [std::ptr::null(); SOURCES_MAX];
        for (from, source) in from.iter_mut().zip(sources) {
            *from = source[..bytes].as_ptr();
        }
        let mut to = [std::ptr::null_mut(); OUTPUTS_MAX];
        for (to, output) in to.iter_mut().zip(outputs.iter_mut()) {
            *to = output[..bytes].as_mut_ptr();
        }
        // SAFETY: each pointer is that of a slice of so many bytes, outputs exclusively borrowed.
        unsafe { self.pass(&from[..sources.len()], &to[..outputs.len()], bytes) }
    }

    /// Reads `bytes` whole blocks of bytes through copies.
    fn copied(&self, sources: &[&[u8]], outputs: &mut [&mut [u8]], bytes: usize) {
        let mut copies = Copies([[0; BLOCK]; SOURCES_MAX]);
        for at in (0..bytes).step_by(BLOCK) {
            for (copy, source) in copies.0.iter_mut().zip(sources) {
                let block = &source[at..at + BLOCK];
                block.iter().step_by(LINE).for_each(|byte| work::fetch_ahead(byte));
                copy.copy_from_slice(block);
            }
            let mut to = [std::ptr::null_mut(); OUTPUTS_MAX];
            for (to, output) in to.iter_mut().zip(outputs.iter_mut()) {
                *to = output[at..at + BLOCK].as_mut_ptr();
            }
            let from = copies.0.each_ref().map(|copy| copy.as_ptr());
            // SAFETY: each pointer is that of a block, outputs exclusively borrowed.
            unsafe { self.pass(&from[..sources.len()], &to[..outputs.len()], BLOCK) }
        }
    }

    /// Computes bytes that some sources or outputs do not have, or that fill no block.
    fn padded(&self, sources: &[&[u8]], outputs: &mut [&mut [u8]], bytes: Range<usize>) {
        let mut copies = Copies([[0; BLOCK]; SOURCES_MAX]);
        let mut results = Copies([[0; BLOCK]; OUTPUTS_MAX]);
        for at in bytes.clone().step_by(BLOCK) {
            let part = |length: usize| at.min(length)..bytes.end.min(at + BLOCK).min(length);
            for (copy, source) in copies.0.iter_mut().zip(sources) {
                let source = &source[part(source.len())];
                let (bytes, padding) = copy.split_at_mut(source.len());
                bytes.copy_from_slice(source);
                padding.fill(0);
            }
            for (result, output) in results.0.iter_mut().zip(outputs.iter()) {
                let output = &output[part(output.len())];
                result[..output.len()].copy_from_slice(output);
            }
            let from = copies.0.each_ref().map(|copy| copy.as_ptr());
            let to = results.0.each_mut().map(|result| result.as_mut_ptr());
            // SAFETY: each pointer is that of a block, results exclusively borrowed.
            unsafe { self.pass(&from[..sources.len()], &to[..outputs.len()], BLOCK) }
            for (result, output) in results.0.iter().zip(outputs.iter_mut()) {
                let part = part(output.len());
                let output = &mut output[part];
                output.copy_from_slice(&result[..output.len()]);
            }
        }
    }

    /// Does the passes over all outputs, in groups of nearly equal size.
    ///
    /// # Safety
    /// Sources and outputs hold `bytes` bytes, a multiple of [`BLOCK`]; no output overlaps another
    /// piece.
    unsafe fn pass(&self, sources: &[*const u8], outputs: &[*mut u8], bytes: usize) {
        if outputs.is_empty() || bytes == 0 {
            return;
        }
        let groups = outputs.len().div_ceil(self.functions.outputs);
        let size = outputs.len().div_ceil(groups);
        for (index, outputs) in outputs.chunks(size).enumerate() {
            let first = self.columns.start * self.tables.rows() + index * size;
            let (tables, is_added) = (self.tables, self.is_added);
            let work = Work { tables, first, sources, outputs, bytes, is_added };
            // SAFETY: the caller's guarantees; the tables cover all columns and rows, as `run`
            // checked; a version exists only if the processor can run it.
            unsafe { (self.functions.run)(&work) }
        }
    }
}
