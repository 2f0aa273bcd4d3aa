//! Compares CRC-32C of verify with crc-fast and libisal, on one core, in one run.
//!
//! Usage: `crc LIBISAL [ROUNDS]`, with the path of a shared library. The three alternate. Time is
//! CPU time of the thread, so that other work on the machine counts little. Figures are medians of
//! rounds; ratios are quartiles of the rounds' ratios.

use std::error::Error;
use std::hint::black_box;

use crc_fast::{CrcAlgorithm, checksum};
use csd_kernels::isal;
use csd_kernels::verify::{Plan, Version};

#[path = "floors/cpu_time.rs"]
mod cpu_time;

/// Bytes of one contender in a round, at least.
const TURN: usize = 64 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: crc LIBISAL [ROUNDS]")?;
    let rounds: usize = arguments.next().map_or(Ok(25), |text| text.parse())?;
    let isal = isal::crc32c(&path).ok_or("not libisal")?;
    let fast =
        |bytes: &[u8]| u32::try_from(checksum(CrcAlgorithm::Crc32Iscsi, bytes)).expect("32 bits");
    println!("{path}; CPU time of one thread, {rounds} rounds; GB/s; ratios in quartiles");
    let cases =
        [(4096, 256 << 10), (4096, 64 << 20), (256 << 10, 256 << 10), (256 << 20, 256 << 20)];
    for (page, bytes) in cases {
        let data: Vec<u8> = (0..bytes as u64 / 8)
            .flat_map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17).to_le_bytes())
            .collect();
        let unrolls: &[u8] = if page == 4096 { &[1, 2, 3, 4, 8] } else { &[1] };
        for unroll in unrolls {
            let plan = Plan::new(u32::try_from(page)?, 1, 1, *unroll)?;
            compare((&data, page), plan, rounds, &fast, &isal);
        }
    }
    Ok(())
}

/// Compares the three on pages of `data`, and prints a row for each of our versions.
fn compare(
    (data, page): (&[u8], usize),
    plan: Plan,
    rounds: usize,
    fast: &dyn Fn(&[u8]) -> u32,
    isal: &dyn Fn(&[u8]) -> u32,
) {
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
        let of = |pick: &dyn Fn(&[f64; 3]) -> f64| quartiles(measured.iter().map(pick).collect());
        let [own, other, third] = [0, 1, 2].map(|place| of(&|rates| rates[place])[1]);
        println!(
            "{:6} KiB pages of {:6} KiB, {:8} unroll {}: {own:6.2}, crc-fast {other:6.2}, libisal \
             {third:6.2}; to crc-fast {:.2?}, to libisal {:.2?}",
            page >> 10,
            data.len() >> 10,
            version.name(),
            plan.unroll(),
            of(&|rates| rates[0] / rates[1]),
            of(&|rates| rates[0] / rates[2]),
        );
    }
}

/// Returns bytes per nanosecond of CPU time.
fn rate(data: &[u8], mut work: impl FnMut()) -> f64 {
    let repeats = TURN.div_ceil(data.len());
    let began = cpu_time::nanoseconds();
    (0..repeats).for_each(|_| work());
    (repeats * data.len()) as f64 / (cpu_time::nanoseconds() - began)
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}
