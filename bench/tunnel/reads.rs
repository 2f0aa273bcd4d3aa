//! Reads 4 KiB blocks of a drive at depth 1 for a while, and prints how long they took as JSON: the
//! reader of `bench/tunnel/pairs.py`.
//!
//! `reads ADDRESS NQN BLOCKS MILLISECONDS`

use std::time::{Duration, Instant};

use csd_bench::wire::{Single, Target};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, nqn, blocks, window] = &words[..] else {
        return Err("usage: reads ADDRESS NQN BLOCKS MILLISECONDS".into());
    };
    let (blocks, window): (u64, u64) = (blocks.parse()?, window.parse()?);
    let target = Target { nqn: nqn.clone(), ..Target::started(address.parse()?) };
    let mut reader = Single::connect(&target)?;
    let (begun, mut state, mut all) = (Instant::now(), 0x9E37_79B9_7F4A_7C15_u64, Vec::new());
    while begun.elapsed() < Duration::from_millis(window) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        all.push(reader.read_ns((state >> 33) % blocks)?);
    }
    all.sort_unstable();
    let us = |percent: usize| all[(all.len() - 1) * percent / 100] / 1000;
    println!("{{\"reads\": {}, \"p50_us\": {}, \"p99_us\": {}}}", all.len(), us(50), us(99));
    Ok(())
}
