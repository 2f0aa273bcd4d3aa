//! Measures the worst modules known to pass the limits: the cost to compile them, and the memory of
//! compiled modules that are kept.
//!
//! Usage: `cargo run -p csd-wasm --example compile_bounds [NAME]`; NAME is a part of a module's
//! name.
//!
//! Prints processor time, peak memory beyond that in use before, and the size that the cache counts
//! for the compiled module. Each module is compiled in its own process, because memory that an
//! earlier one has freed would hide the peak.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::cast_possible_truncation)]
#![allow(clippy::cast_precision_loss)]

use csd_kernels::program::Engine;
use csd_wasm::Wasm;

#[allow(dead_code)]
#[path = "../tests/worst/mod.rs"]
mod worst;

/// Number of modules that are kept to measure the memory of one.
const KEPT: u64 = 12;

/// Returns the processor time of this process, seconds.
fn processor_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = text.rsplit_once(')').unwrap();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn main() {
    let wasm = Wasm::new().unwrap();
    if let Some(name) = std::env::args().nth(1) {
        worst::all(5).iter().filter(|(of, _)| of.contains(&name)).for_each(|(name, module)| {
            measure(&wasm, name, &module.bytes());
        });
        return;
    }
    for (name, _) in worst::all(5) {
        let own = std::env::current_exe().unwrap();
        assert!(std::process::Command::new(own).arg(name).status().unwrap().success(), "{name}");
    }
    let before = worst::memory("VmRSS");
    let kept: Vec<_> = (0..KEPT)
        .map(|number| {
            let functions = 9_900 + number as usize;
            wasm.compile(&worst::of(functions, 0, &[]).bytes()).unwrap()
        })
        .collect();
    let counted: u64 = kept.iter().map(|made| made.bytes()).sum();
    let taken = worst::memory("VmRSS").saturating_sub(before);
    println!("{KEPT} of 9,900 functions: {:.1} MiB, count {:.1} MiB", mib(taken), mib(counted));
}

fn measure(wasm: &Wasm, name: &str, bytes: &[u8]) {
    let (before, began_s) = (worst::begin_peak(), processor_s());
    let made = wasm.compile(bytes).unwrap_or_else(|why| panic!("{name}: {why}"));
    let (took_s, peak) = (processor_s() - began_s, worst::memory("VmHWM") - before);
    println!(
        "{name:24} {:9} bytes {took_s:6.2} s {:6.1} MiB at most, counts {:6.2} MiB",
        bytes.len(),
        mib(peak),
        mib(made.bytes()),
    );
}
