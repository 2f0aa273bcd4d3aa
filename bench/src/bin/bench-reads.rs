//! Reads 4 KiB blocks of a drive at depth 1 for a while, and prints how long they took as JSON: the
//! reader of several `pairs.py`.
//!
//! `bench-reads ADDRESS NQN BLOCKS MILLISECONDS`

use std::time::Duration;

use csd_bench::wire::{Single, Target};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, nqn, blocks, window] = &words[..] else {
        return Err("usage: bench-reads ADDRESS NQN BLOCKS MILLISECONDS".into());
    };
    let (blocks, window): (u64, u64) = (blocks.parse()?, window.parse()?);
    let target = Target { nqn: nqn.clone(), ..Target::started(address.parse()?) };
    let mut reader = Single::connect(&target)?;
    let all = reader.read_for(Duration::from_millis(window), blocks)?;
    let us = |percent: usize| all[(all.len() - 1) * percent / 100] / 1000;
    println!("{{\"reads\": {}, \"p50_us\": {}, \"p99_us\": {}}}", all.len(), us(50), us(99));
    Ok(())
}
