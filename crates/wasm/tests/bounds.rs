//! Memory: of compiling the worst modules that the limits let through, and of those that are
//! remembered. One test in a process of its own, whose memory is looked at.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::cast_possible_truncation)]

use csd_kernels::program::Engine;
use csd_wasm::Wasm;

#[allow(dead_code)]
mod worst;

/// Most memory that compiling takes: said in `docs/guide/programs.md`.
const COMPILING_BYTES_MAX: u64 = 256 << 20;
/// Most memory of what is remembered, likewise.
const CACHE_BYTES_MAX: u64 = 64 << 20;

#[test]
fn compiling_and_remembering_take_no_more_memory_than_is_said() {
    for (name, module) in worst::all(1) {
        let wasm = Wasm::new().unwrap();
        let before = worst::begin_peak();
        wasm.compile(&module.bytes()).unwrap_or_else(|why| panic!("{name}: {why}"));
        let peak = worst::memory("VmHWM").saturating_sub(before);
        assert!(peak <= COMPILING_BYTES_MAX, "{name}: {peak} bytes");
    }
    // Each of the 20 counts 4 MiB and more.
    let wasm = Wasm::new().unwrap();
    let before = worst::memory("VmRSS");
    let program = |number: usize| worst::of(9_900 + number, 0, &[]).bytes();
    let mut all = 0;
    for number in 0..20 {
        all += wasm.compile(&program(number)).unwrap().bytes();
        assert!(wasm.cached_bytes() <= CACHE_BYTES_MAX);
    }
    assert!(all > CACHE_BYTES_MAX + (16 << 20), "more were compiled than are kept: {all}");
    assert!(wasm.cached_bytes() > CACHE_BYTES_MAX / 2, "and some are kept");
    let grown = worst::memory("VmRSS").saturating_sub(before);
    assert!(grown <= CACHE_BYTES_MAX + COMPILING_BYTES_MAX / 2, "{grown} bytes");
}
