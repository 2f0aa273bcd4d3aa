//! The speed of count compared with that of plain memory reads.
//!
//! Floors: `sum` reads everything once and adds 64-bit words (with the machine's widest loads under
//! `RUSTFLAGS=-Ctarget-cpu=native`); `copy` is `memcpy`, which also writes, counted by the bytes
//! that it reads.

use std::error::Error;
use std::hint::black_box;

use csd_bench::random::numbers;
use csd_bench::report::medians;
use csd_bench::timing::rate;
use csd_kernels::Scalar;
use csd_kernels::count::Version;

use crate::read;

const ROUNDS: usize = 15;

/// Prints a row for every version and type.
pub(crate) fn compare(mib: usize) -> Result<(), Box<dyn Error>> {
    let bytes = mib << 20;
    let mut source = vec![0u8; bytes];
    for (element, number) in source.as_chunks_mut::<8>().0.iter_mut().zip(numbers(1)) {
        *element = (number & 0xFF).to_le_bytes();
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
            let rounds = (0..ROUNDS).map(|_| {
                let count = rate(bytes, || {
                    black_box(version.count(value, black_box(&source)));
                });
                let sum = rate(bytes, || {
                    black_box(read(black_box(&source)));
                });
                let copied = rate(bytes, || {
                    copy.copy_from_slice(black_box(&source));
                    black_box(&copy);
                });
                [count, sum, copied, count / sum.max(copied)]
            });
            let [count, sum, copied, ratio] = medians(rounds)?;
            let element = value.element().name();
            let name = version.name();
            println!("{name:10} {element:5} {count:8.2} {sum:8.2} {copied:8.2} {ratio:9.3}");
        }
    }
    Ok(())
}
