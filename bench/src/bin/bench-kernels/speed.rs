//! The speed of vector add, dense rows and verify compared with reading, copying, a non-temporal
//! triad and another CRC-32C.

use std::hint::black_box;
use std::time::Instant;

use csd_bench::Error;
use csd_bench::random::numbers;
use csd_bench::report::medians;
use csd_bench::timing::rate;
use csd_kernels::page_rank::DenseVersion;
use csd_kernels::verify::{Plan, Version as Crc, scalar};
use csd_kernels::{Numeric, vector_add};

use crate::{read, triad};

const ROUNDS: usize = 9;

/// Prints a row for every kernel and version.
pub(crate) fn compare(mib: usize) -> Result<(), Box<dyn std::error::Error>> {
    println!("{mib} MiB, {ROUNDS} rounds; medians; ratios are medians of pairs");
    add(mib << 20, 1)?;
    add(1 << 20, mib)?;
    dense(mib << 20)?;
    Ok(verify(mib << 20)?)
}

/// Returns bytes that are ordinary numbers in any type: denormal ones take the processor's slow
/// path.
fn data(bytes: usize, seed: u64) -> Vec<u8> {
    let mut data = vec![0; bytes];
    for (word, number) in data.as_chunks_mut::<8>().0.iter_mut().zip(numbers(seed)) {
        *word = (number & 0x3FFF_FFFF_3FFF_FFFF | 0x3000_0000_3000_0000).to_le_bytes();
    }
    data
}

/// Adds arrays of `bytes` bytes, `repeats` times a round; rates count bytes read and written.
fn add(bytes: usize, repeats: usize) -> Result<(), Error> {
    let (left, right) = (data(bytes, 1), data(bytes + 4096, 2));
    let (mut sum, mut copy) = (vec![1u8; bytes + 4096], vec![1u8; bytes]);
    // Offsets differ by parts of a page, because a store delays loads whose addresses end alike.
    let (right, sum) = (&right[1344..][..bytes], &mut sum[2688..][..bytes]);
    for version in vector_add::Version::available() {
        for element in Numeric::ALL {
            let rounds = (0..ROUNDS).map(|_| {
                let added = rate(3 * bytes * repeats, || {
                    for _ in 0..repeats {
                        version.add(element, black_box(&left), black_box(right), sum);
                        black_box(&sum);
                    }
                });
                let read = rate(2 * bytes * repeats, || {
                    for _ in 0..repeats {
                        black_box(read(black_box(&left)) ^ read(black_box(right)));
                    }
                });
                let copied = rate(2 * bytes * repeats, || {
                    for _ in 0..repeats {
                        copy.copy_from_slice(black_box(&left));
                        black_box(&copy);
                    }
                });
                let streamed = rate(3 * bytes * repeats, || {
                    for _ in 0..repeats {
                        triad::streamed(black_box(&left), black_box(right), sum);
                        black_box(&sum);
                    }
                });
                let streamed = if cfg!(target_arch = "x86_64") { streamed } else { 0.0 };
                [added, read, copied, streamed, added / read.max(copied).max(streamed)]
            });
            let [added, read, copied, streamed, ratio] = medians(rounds)?;
            println!(
                "vector-add {:4} KiB arrays {:8} {:3}: {added:6.2} GB/s, read {read:6.2}, \
                 copy {copied:6.2}, non-temporal triad {streamed:6.2}, ratio {ratio:.3}",
                bytes >> 10,
                version.name(),
                element.element().name()
            );
        }
    }
    Ok(())
}

/// Measures rows of 4096 columns; the floor reads them.
fn dense(bytes: usize) -> Result<(), Error> {
    let rows = data(bytes, 3);
    let vector = vec![0.5f32; 4096];
    for version in DenseVersion::available() {
        let rounds = (0..ROUNDS).map(|_| {
            let product = rate(bytes, || {
                let mut sums = Vec::new();
                let _ = version.start(&vector).feed(black_box(&rows), &mut sums);
                black_box(sums);
            });
            let read = rate(bytes, || {
                black_box(read(black_box(&rows)));
            });
            [product, read, 0.0, product / read]
        });
        let [product, read, _, ratio] = medians(rounds)?;
        let name = version.name();
        println!("dense rows {name:8}: {product:6.2} GB/s, read {read:6.2}, ratio {ratio:.3}");
    }
    Ok(())
}

/// Measures two gains: of instructions (one unit against the byte-wise one) and of parallel work
/// (two units against one).
fn verify(bytes: usize) -> Result<(), Error> {
    let data = data(bytes, 4);
    for version in Crc::available() {
        for unroll in [1, 2, 3, 4, 8] {
            let plan = Plan::new(4096, 240, 1, unroll).expect("in range");
            let rounds = (0..ROUNDS).map(|round| {
                let found = rate(bytes, || drop(black_box(version.checksums(plan, &data))));
                let other = rate(bytes, || {
                    black_box(data.chunks(4096).map(crc32c::crc32c).fold(0, |all, one| all ^ one));
                });
                // The byte-wise unit is slow: an eighth of the data, in few rounds.
                let slow = &data[..bytes / 8];
                let few = round % 4 == 0;
                let bytewise = if few {
                    rate(slow.len(), || drop(black_box(scalar::checksums(plan, slow))))
                } else {
                    f64::NAN
                };
                [found, other, found / bytewise, found / other]
            });
            let [found, other, gain, ratio] = medians(rounds)?;
            println!(
                "verify {:8} unroll {unroll}: {found:6.2} GB/s, crc32c crate {other:6.2}, \
                 ratio {ratio:.3}, instruction gain {gain:.1}",
                version.name()
            );
        }
    }
    let rounds = (0..ROUNDS).map(|_| {
        let one = rate(bytes, || units(&data, 1));
        let two = rate(bytes, || units(&data, 2));
        [one, two, 0.0, two / one]
    });
    let [one, two, _, ratio] = medians(rounds)?;
    println!("verify units: 1 {one:6.2} GB/s, 2 {two:6.2}, parallel gain {ratio:.2}");
    let timed = |plan: &Plan| {
        let start = Instant::now();
        black_box(csd_kernels::verify::checksums(*plan, &data));
        u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    };
    println!("verify auto with one unit: {:?}", Plan::auto(4096, 1, timed));
    Ok(())
}

/// Computes the checksums with one thread per unit, each over its batches.
fn units(data: &[u8], units: u16) {
    let plan = Plan::new(4096, 240, units, 2).expect("in range");
    std::thread::scope(|scope| {
        for unit in 0..units {
            scope.spawn(move || {
                let own = plan.batches(data.len() as u64).filter(|batch| batch.unit == unit);
                for batch in own {
                    let at = |byte: u64| usize::try_from(byte).expect("in memory");
                    let bytes = &data[at(batch.bytes.start)..at(batch.bytes.end)];
                    black_box(csd_kernels::verify::checksums(plan, bytes));
                }
            });
        }
    });
}
