//! Compares the speed of the kernels with their floors, in one run.
//!
//! Usage: `speed [MIB]` (256 by default) compares vector add, dense rows and verify with reading,
//! copying and another CRC-32C. `speed merge ELEMENTS` and `speed sparse NODES EDGES` print
//! nanoseconds per element or edge, the least of some rounds; `tests/oracle/speed.py` alternates
//! them with `std::set_union` and SciPy. Other figures are medians of rounds and of the rounds'
//! ratios, as in `examples/count.rs`.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use csd_kernels::page_rank::{DenseVersion, Graph, SparseVersion};
use csd_kernels::verify::{Plan, Version as Crc, scalar};
use csd_kernels::{Numeric, array_merge, vector_add};

#[path = "floors/triad.rs"]
mod triad;

const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["merge", elements] => merge(elements.parse()?),
        ["sparse", nodes, edges] => sparse(nodes.parse()?, &std::fs::read(edges)?),
        ["merge" | "sparse", ..] => Err("wrong use: see the head of examples/speed.rs".into()),
        _ => {
            let mib: usize = arguments.first().map_or(Ok(256), |text| text.parse())?;
            println!("{mib} MiB, {ROUNDS} rounds; medians; ratios are medians of pairs");
            add(mib << 20, 1);
            add(1 << 20, mib);
            dense(mib << 20);
            verify(mib << 20);
            Ok(())
        }
    }
}

/// Returns bytes that are ordinary numbers in any type: denormal ones take the processor's slow
/// path.
fn data(bytes: usize, seed: u64) -> Vec<u8> {
    let mut data = vec![0; bytes];
    let mut state = seed;
    for word in data.as_chunks_mut::<8>().0 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *word = (state & 0x3FFF_FFFF_3FFF_FFFF | 0x3000_0000_3000_0000).to_le_bytes();
    }
    data
}

/// Adds arrays of `bytes` bytes, `repeats` times a round; rates count bytes read and written.
fn add(bytes: usize, repeats: usize) {
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
                        black_box(total(black_box(&left)) ^ total(black_box(right)));
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
            let [added, read, copied, streamed, ratio] = medians(rounds.collect());
            println!(
                "vector-add {:4} KiB arrays {:8} {:3}: {added:6.2} GB/s, read {read:6.2}, \
                 copy {copied:6.2}, non-temporal triad {streamed:6.2}, ratio {ratio:.3}",
                bytes >> 10,
                version.name(),
                element.element().name()
            );
        }
    }
}

/// Measures rows of 4096 columns; the floor reads them.
fn dense(bytes: usize) {
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
                black_box(total(black_box(&rows)));
            });
            [product, read, 0.0, product / read]
        });
        let [product, read, _, ratio] = medians(rounds.collect());
        let name = version.name();
        println!("dense rows {name:8}: {product:6.2} GB/s, read {read:6.2}, ratio {ratio:.3}");
    }
}

/// Measures two gains: of instructions (one unit against the byte-wise one) and of parallel work
/// (two units against one).
fn verify(bytes: usize) {
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
            let [found, other, gain, ratio] = medians(rounds.collect());
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
    let [one, two, _, ratio] = medians(rounds.collect());
    println!("verify units: 1 {one:6.2} GB/s, 2 {two:6.2}, parallel gain {ratio:.2}");
    let timed = |plan: &Plan| {
        let start = Instant::now();
        black_box(csd_kernels::verify::checksums(*plan, &data));
        u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    };
    println!("verify auto with one unit: {:?}", Plan::auto(4096, 1, timed));
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

/// Prints the least nanoseconds per input element for six patterns; `set_union.cc` makes the same.
fn merge(elements: usize) -> Result<(), Box<dyn Error>> {
    for pattern in 0..6u64 {
        let [left, right] = [0u64, 1].map(|side| sorted(elements, pattern, side));
        let bytes: [Vec<u8>; 2] = [&left, &right]
            .map(|values| values.iter().flat_map(|value| value.to_le_bytes()).collect());
        let parameters = array_merge::Parameters { element: Numeric::I32 };
        let mut out = vec![0u8; bytes[0].len() + bytes[1].len()];
        let times = (0..5).map(|_| {
            let start = Instant::now();
            let mut at = 0;
            let piece = |bytes| array_merge::Piece { bytes, last: true };
            let mut merge = array_merge::ArrayMerge::new(parameters);
            let done = merge.feed(piece(&bytes[0]), piece(&bytes[1]), |merged| {
                out[at..at + merged.len()].copy_from_slice(merged);
                at += merged.len();
            });
            black_box((done.is_ok(), &out));
            nanoseconds(start) / merge.elements().max(1) as f64
        });
        println!("{pattern} {:.4}", times.fold(f64::INFINITY, f64::min));
    }
    Ok(())
}

/// Makes a sorted input by pattern: even, skewed, many duplicates, apart, runs, equal.
fn sorted(elements: usize, pattern: u64, side: u64) -> Vec<i32> {
    let count = if pattern == 1 && side == 1 { elements / 64 } else { elements };
    let seed = if pattern == 5 { 1 } else { side + 1 };
    let mut state = seed;
    let mut values: Vec<i32> = (0..count as u64)
        .map(|index| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let random = (state >> 33) % (1 << 30);
            let value = match pattern {
                2 => random % 5000,
                3 => random + side * (1 << 30),
                4 => (index / 1000 * 2 + side) * 1000 + index % 1000,
                _ => random,
            };
            i32::try_from(value % (1 << 31)).expect("below 2^31")
        })
        .collect();
    values.sort_unstable();
    values
}

/// Prints the least nanoseconds per edge for each version.
fn sparse(nodes: u32, edges: &[u8]) -> Result<(), Box<dyn Error>> {
    let words: Vec<u32> =
        edges.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let graph = Graph::from_edges(nodes, words.as_chunks::<2>().0)?;
    let vector = vec![0.5f64; nodes as usize];
    let mut sums = Vec::with_capacity(nodes as usize);
    for version in SparseVersion::available() {
        let mut least = f64::INFINITY;
        // Short rounds are interrupted more often, and are cheap.
        for _ in 0..ROUNDS.max(30_000_000 / graph.edges().max(1)) {
            sums.clear();
            let start = Instant::now();
            version.start(&vector).feed(graph.rows(), &mut sums)?;
            black_box(&sums);
            least = least.min(nanoseconds(start) / graph.edges().max(1) as f64);
        }
        println!("{} {least:.4}", version.name());
    }
    Ok(())
}

/// Returns the widest sum that portable code gives.
fn total(bytes: &[u8]) -> u64 {
    let mut lanes = [0u64; 32];
    for turn in bytes.as_chunks::<256>().0 {
        for (lane, word) in lanes.iter_mut().zip(turn.as_chunks::<8>().0) {
            *lane = lane.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    lanes.iter().fold(0, |all, lane| all.wrapping_add(*lane))
}

#[allow(clippy::cast_precision_loss)] // a measure of time has fewer digits
fn nanoseconds(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64
}

/// Returns bytes per nanosecond, which are GB/s.
#[allow(clippy::cast_precision_loss)] // a measure of time has fewer digits
fn rate(bytes: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    bytes as f64 / nanoseconds(start)
}

/// Returns the median of each column, without NaN.
fn medians<const N: usize>(rounds: Vec<[f64; N]>) -> [f64; N] {
    std::array::from_fn(|column| {
        let mut values: Vec<f64> =
            rounds.iter().map(|round| round[column]).filter(|value| !value.is_nan()).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    })
}
