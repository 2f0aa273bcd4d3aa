//! Compares the speed of `count` in WebAssembly with the built-in one, in one run.
//!
//! Usage: `bench-wasm [MIB]` (64 by default).
//!
//! Both run in steps like those of a compute thread, over the same chunks of 1 MiB. Every round
//! measures one after the other, so that other work on the machine slows both alike. Prints
//! medians, and the median of the rounds' ratios.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use csd_bench::random::numbers;
use csd_bench::report::medians;
use csd_kernels::count;
use csd_kernels::kernel::{Kernel, Wanted};
use csd_kernels::program::{Engine, Limits, Program, run};
use csd_reactor::Buffer;
use csd_wasm::Wasm;

const ROUNDS: usize = 21;
/// Value that is counted.
const WANTED: i32 = 7;

fn main() -> Result<(), Box<dyn Error>> {
    let mib: usize = std::env::args().nth(1).map_or(Ok(64), |text| text.parse())?;
    let mut random = numbers(1);
    let mut chunk = || {
        let mut bytes = Buffer::zeroed(1 << 20);
        for (element, number) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(&mut random) {
            let [byte, ..] = number.to_le_bytes();
            *element = u32::from(byte).to_le_bytes();
        }
        bytes
    };
    let data: Vec<Buffer> = (0..mib).map(|_| chunk()).collect();
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/built/rust-count.wasm");
    let began = Instant::now();
    let guest = Wasm::new()?.compile(&std::fs::read(built)?)?;
    println!("compiled in {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
    // Element type i32, equal to, six zeros, the value.
    let mut parameters = vec![1, 0, 0, 0, 0, 0, 0, 0];
    parameters.extend_from_slice(&i64::from(WANTED).to_le_bytes());
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let (own_s, own) = timed(count::KERNEL.start(&parameters, Wanted::Result)?, &data)?;
        let guest = guest.start(&WANTED.to_le_bytes(), &Limits::default())?;
        let (guest_s, guest) = timed(guest, &data)?;
        assert_eq!(own, guest, "both count the same");
        rounds.push([own_s, guest_s, guest_s / own_s]);
    }
    let [own_s, guest_s, ratio] = medians(rounds)?;
    let gigabytes = (mib << 20) as f64 / 1e9;
    println!("{mib} MiB, {ROUNDS} rounds of both; medians");
    println!("drive's own  {:6.2} GB/s", gigabytes / own_s);
    println!("WebAssembly  {:6.2} GB/s", gigabytes / guest_s);
    println!("ratio of time {ratio:.2}");
    Ok(())
}

/// Returns the seconds that a program takes, and its result.
fn timed(program: Box<dyn Program>, data: &[Buffer]) -> Result<(f64, u64), Box<dyn Error>> {
    let chunks = data.iter().map(|chunk| Buffer::from_slice(chunk)).collect();
    let began = Instant::now();
    let (result, _) = run(program, vec![chunks])?;
    Ok((began.elapsed().as_secs_f64(), result))
}
