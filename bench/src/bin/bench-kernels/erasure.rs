//! The speed of the erasure code compared with libisal and with memory, on one core.
//!
//! These alternate: our version, libisal over whole pieces, libisal in slices of 16 KiB, and the
//! floor, which reads every source and writes every output. Time is CPU time of the thread, the
//! least of some calls in a round, so that other work on the machine counts little. Figures are
//! medians of rounds; ratios are medians of the rounds' ratios to the faster of libisal's two. The
//! version "avx2" is compared with libisal's AVX2 functions.

use std::error::Error;
use std::hint::black_box;

use csd_bench::isal::Erasure as Isal;
use csd_bench::report::medians;
use csd_bench::{random, timing};
use csd_kernels::erasure::{Code, Decoder, Version};

use crate::Library;

const PIECE: usize = 1 << 20;
const PAGE: usize = 4096;
const SLICE: usize = 16 << 10;
/// Time of one contender in a round, nanoseconds.
const TURN: f64 = 2e7;

/// One operation, prepared for both.
struct Case {
    code: Code,
    decoder: Option<Decoder>,
    tables: Vec<u8>,
}

/// Prints a row for every case and version.
pub(crate) fn compare(library: &Library, only: Option<&str>) -> Result<(), Box<dyn Error>> {
    let Library { libisal: path, rounds } = library;
    let best = Isal::load(path, "ec_encode_data").ok_or("not libisal")?;
    let avx2 = Isal::load(path, "ec_encode_data_avx2");
    println!("{path}; pieces of 1 MiB, {rounds} rounds; GB/s of sources");
    let versions = Version::available().filter(|version| version.name() != "portable");
    for version in versions.filter(|v| only.is_none_or(|name| name == v.name())) {
        let theirs = if version.name() == "avx2" { avx2.as_ref().unwrap_or(&best) } else { &best };
        let mut ratios = Vec::new();
        for is_decoded in [false, true] {
            for (data, parity) in [(4, 2), (8, 4), (16, 8), (32, 16)] {
                let case = Case::new(theirs, data, parity, is_decoded)?;
                ratios.push(case.compare(theirs, version, *rounds)?);
            }
        }
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / 8.0).exp();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        println!("{:11}: geometric mean {mean:.2}, least {least:.2}", version.name());
    }
    Ok(())
}

impl Case {
    /// Prepares encoding, or decoding of the first `parity` data pieces.
    fn new(
        isal: &Isal,
        data: usize,
        parity: usize,
        is_decoded: bool,
    ) -> Result<Self, Box<dyn Error>> {
        let code = Code::new(data, parity)?;
        let matrix = isal.matrix(data, parity);
        let (decoder, rows) = if is_decoded {
            let sources: Vec<usize> = (parity..data + parity).collect();
            let wanted: Vec<usize> = (0..parity).collect();
            let mut inverse = isal.invert(matrix[parity * data..].to_vec(), data);
            inverse.truncate(parity * data);
            (Some(code.decoder(&sources, &wanted)?), inverse)
        } else {
            (None, matrix[data * data..].to_vec())
        };
        let tables = isal.tables(data, parity, rows);
        Ok(Self { code, decoder, tables })
    }

    /// Prints the case's figures and returns the ratio to libisal.
    fn compare(
        mut self,
        isal: &Isal,
        version: Version,
        rounds: usize,
    ) -> Result<f64, Box<dyn Error>> {
        let (columns, rows) = (self.code.data(), self.code.parity());
        let mut memory: Vec<Vec<u8>> =
            (0..columns + 2 * rows).map(|seed| random::bytes(PIECE + PAGE, seed as u64)).collect();
        let mut pieces: Vec<&mut [u8]> = memory.iter_mut().map(|piece| aligned(piece)).collect();
        let (sources, outputs) = pieces.split_at_mut(columns);
        let sources: Vec<&[u8]> = sources.iter().map(|source| &**source).collect();
        let (ours, theirs) = outputs.split_at_mut(rows);
        let mut measured = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let mut result = Ok(());
            let own = least(|| {
                result = match &self.decoder {
                    Some(decoder) => version.decode(decoder, black_box(&sources), ours),
                    None => version.encode(&self.code, black_box(&sources), ours),
                };
            });
            result?;
            let whole = least(|| isal.encode(&mut self.tables, &sources, theirs, PIECE));
            let sliced = least(|| isal.encode(&mut self.tables, &sources, theirs, SLICE));
            assert!(ours == theirs, "different bytes");
            let floor = least(|| read_and_write(&sources, theirs));
            measured.push([own, whole, sliced, floor, whole.min(sliced) / own]);
        }
        let [own, whole, sliced, floor, ratio] = medians(measured)?;
        let [own, whole, sliced, floor] =
            [own, whole, sliced, floor].map(|time| rate(columns, time));
        println!(
            "{:11} {} ({columns:2},{rows:2}): {own:6.2}, libisal whole {whole:6.2}, sliced \
             {sliced:6.2}, read and write {floor:6.2}, ratio {ratio:.2}",
            version.name(),
            if self.decoder.is_some() { "decode" } else { "encode" },
        );
        Ok(ratio)
    }
}

/// Reads every source and writes every output.
fn read_and_write(sources: &[&[u8]], outputs: &mut [&mut [u8]]) {
    for (source, output) in sources.iter().zip(outputs.iter_mut()) {
        output.copy_from_slice(black_box(source));
    }
    for source in &sources[outputs.len()..] {
        let words = black_box(source).as_chunks::<8>().0.iter();
        black_box(words.fold(0, |all, word| all ^ u64::from_le_bytes(*word)));
    }
}

/// Returns the part of a piece's memory that begins at a page.
fn aligned(memory: &mut [u8]) -> &mut [u8] {
    let at = memory.as_ptr().align_offset(PAGE);
    &mut memory[at..at + PIECE]
}

/// Returns the least CPU time of a call, nanoseconds, of as many calls as a turn has time for.
fn least(mut call: impl FnMut()) -> f64 {
    let (mut least, mut spent) = (f64::INFINITY, 0.0);
    while spent < TURN {
        let time = timing::cpu_ns(&mut call);
        least = least.min(time);
        spent += time;
    }
    least
}

/// Returns bytes per nanosecond, which are GB/s.
#[allow(clippy::cast_precision_loss)] // a measure of time has fewer digits
fn rate(columns: usize, time: f64) -> f64 {
    (columns * PIECE) as f64 / time
}
