//! Compares the speed of count with that of plain memory reads, in one run.
//!
//! Usage: `cargo run --release -p csd-kernels --example count [MIB]` (256 by default).
//!
//! Every round measures a version and then each floor. The output is the median of each, and the
//! median of the rounds' ratios, because other work on the machine slows both of a pair alike.
//! Floors: `sum` reads everything once and adds 64-bit words (with the machine's widest loads under
//! `RUSTFLAGS=-Ctarget-cpu=native`); `copy` is `memcpy`, which also writes, counted by the bytes
//! that it reads.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use csd_kernels::Scalar;
use csd_kernels::count::Version;

const ROUNDS: usize = 15;

fn main() -> Result<(), Box<dyn Error>> {
    let mib: usize = std::env::args().nth(1).map_or(Ok(256), |text| text.parse())?;
    let bytes = mib << 20;
    let mut source = vec![0u8; bytes];
    let mut state = 1u64;
    for element in source.as_chunks_mut::<8>().0 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *element = (state >> 33 & 0xFF).to_le_bytes();
    }
    let mut copy = vec![1u8; bytes];
    println!("{mib} MiB, {ROUNDS} rounds; GB/s are medians, ratios are medians of pairs");
    println!(
        "{:10} {:5} {:>8} {:>8} {:>8} {:>9}",
        "version", "type", "GB/s", "sum", "copy", "ratio"
    );
    let values = [Scalar::I32(7), Scalar::I64(7), Scalar::F32(0.0), Scalar::F64(0.0)];
    for version in Version::available() {
        for value in values {
            let mut rounds = Vec::with_capacity(ROUNDS);
            for _ in 0..ROUNDS {
                let count = rate(bytes, || version.count(value, black_box(&source)));
                let sum = rate(bytes, || sum(black_box(&source)));
                let copied = rate(bytes, || {
                    copy.copy_from_slice(black_box(&source));
                    black_box(copy[bytes / 2]).into()
                });
                rounds.push([count, sum, copied, count / sum.max(copied)]);
            }
            let [count, sum, copied, ratio] = [0, 1, 2, 3].map(|index| median(&rounds, index));
            let element = value.element().name();
            let name = version.name();
            println!("{name:10} {element:5} {count:8.2} {sum:8.2} {copied:8.2} {ratio:9.3}");
        }
    }
    Ok(())
}

/// Returns the widest sum that portable code gives: independent lanes for four wide vectors.
fn sum(bytes: &[u8]) -> u64 {
    let mut lanes = [0u64; 32];
    for turn in bytes.as_chunks::<256>().0 {
        for (lane, word) in lanes.iter_mut().zip(turn.as_chunks::<8>().0) {
            *lane = lane.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    lanes.iter().fold(0, |all, lane| all.wrapping_add(*lane))
}

/// Returns bytes per nanosecond, which are GB/s.
fn rate(bytes: usize, work: impl FnOnce() -> u64) -> f64 {
    let start = Instant::now();
    black_box(work());
    let ns = start.elapsed().as_nanos();
    #[allow(clippy::cast_precision_loss)] // a measure of time has fewer digits
    let rate = bytes as f64 / ns as f64;
    rate
}

fn median(rounds: &[[f64; 4]], index: usize) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(|round| round[index]).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
