//! CRC-32C of verify compared with crc-fast and libisal, on one core.
//!
//! The three alternate. Time is CPU time of the thread, so that other work on the machine counts
//! little. Figures are medians of rounds; ratios are quartiles of the rounds' ratios.

use std::hint::black_box;

use crc_fast::{CrcAlgorithm, checksum};
use csd_bench::report::{medians, quartiles};
use csd_bench::{Error, isal, random, timing};
use csd_kernels::verify::{Plan, Version};

use crate::Library;

/// Bytes of one contender in a round, at least.
const TURN: usize = 64 << 20;

/// Prints a row for every case and version.
pub(crate) fn compare(library: &Library) -> Result<(), Box<dyn std::error::Error>> {
    let Library { libisal: path, rounds } = library;
    let isal = isal::crc32c(path).ok_or("not libisal")?;
    let fast =
        |bytes: &[u8]| u32::try_from(checksum(CrcAlgorithm::Crc32Iscsi, bytes)).expect("32 bits");
    println!("{path}; CPU time of one thread, {rounds} rounds; GB/s; ratios in quartiles");
    let cases =
        [(4096, 256 << 10), (4096, 64 << 20), (256 << 10, 256 << 10), (256 << 20, 256 << 20)];
    for (page, bytes) in cases {
        let data = random::bytes(bytes, 1);
        let unrolls: &[u8] = if page == 4096 { &[1, 2, 3, 4, 8] } else { &[1] };
        for unroll in unrolls {
            let plan = Plan::new(u32::try_from(page)?, 1, 1, *unroll)?;
            row((&data, page), plan, *rounds, &fast, &isal)?;
        }
    }
    Ok(())
}

/// Compares the three on pages of `data`, and prints a row for each of our versions.
fn row(
    (data, page): (&[u8], usize),
    plan: Plan,
    rounds: usize,
    fast: &dyn Fn(&[u8]) -> u32,
    isal: &dyn Fn(&[u8]) -> u32,
) -> Result<(), Error> {
    let every = |crc: &dyn Fn(&[u8]) -> u32| data.chunks(page).map(crc).collect::<Vec<u32>>();
    for version in Version::available() {
        let ours = version.checksums(plan, data);
        assert!(ours == every(fast) && ours == every(isal), "checksums differ");
        let mut found = Vec::with_capacity(ours.len());
        let measured = (0..rounds).map(|_| {
            let own = rate(data, || {
                found.clear();
                let mut verify = version.start(plan);
                verify.feed(black_box(data), &mut found);
                black_box(verify.digest());
            });
            [own, rate(data, || drop(black_box(every(fast)))), rate(data, || drop(every(isal)))]
        });
        let measured: Vec<[f64; 3]> = measured.collect();
        let to = |other: usize| {
            quartiles(measured.iter().map(|rates| rates[0] / rates[other]).collect())
        };
        let [own, other, third] = medians(measured.iter().copied())?;
        println!(
            "{:6} KiB pages of {:6} KiB, {:8} unroll {}: {own:6.2}, crc-fast {other:6.2}, libisal \
             {third:6.2}; to crc-fast {:.2?}, to libisal {:.2?}",
            page >> 10,
            data.len() >> 10,
            version.name(),
            plan.unroll(),
            to(1)?,
            to(2)?,
        );
    }
    Ok(())
}

/// Returns bytes per nanosecond of CPU time.
fn rate(data: &[u8], mut work: impl FnMut()) -> f64 {
    let repeats = TURN.div_ceil(data.len());
    (repeats * data.len()) as f64 / timing::cpu_ns(|| (0..repeats).for_each(|_| work()))
}
