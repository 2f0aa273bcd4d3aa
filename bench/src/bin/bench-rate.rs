//! Reads or writes a drive's blocks through the project's own initiator for a while, and prints the
//! operations per second: a floor of `bench/os/pairs.py`.
//!
//! `bench-rate URL read|write BYTES DEPTH MILLISECONDS SPAN`: so many operations at once, each of
//! so many bytes, at random places of the first SPAN bytes.

use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;
use std::time::{Duration, Instant};

use csd_bench::random::numbers;
use csd_client::{Retry, Volume, VolumeError};
use csd_initiator::{Address, Options};
use csd_reactor::{Class, Config, block_on, spawn};

#[derive(Clone, Copy)]
struct Load {
    writes: bool,
    bytes: usize,
    depth: usize,
    window: Duration,
    span: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, kind, bytes, depth, window, span] = &words[..] else {
        return Err("usage: bench-rate URL read|write BYTES DEPTH MILLISECONDS SPAN".into());
    };
    let address: Address = url.parse()?;
    let load = Load {
        writes: kind == "write",
        bytes: bytes.parse()?,
        depth: depth.parse()?,
        window: Duration::from_millis(window.parse()?),
        span: span.parse()?,
    };
    let config = Config { compute_yields: false, ..Config::default() };
    let per_s = block_on(&config, move || async move { run(&address, load).await })??;
    println!("{{\"per_s\": {per_s:.1}}}");
    Ok(())
}

async fn run(address: &Address, load: Load) -> Result<f64, VolumeError> {
    let volume = Volume::connect(address, &Options::default(), Retry::default()).await?;
    let (begun, count) = (Instant::now(), Rc::new(Cell::new(0_u32)));
    let tasks: Vec<_> = (1..=load.depth as u64)
        .map(|seed| {
            let (volume, count) = (volume.clone(), Rc::clone(&count));
            spawn(Class::Foreground, async move {
                let (data, places) = (vec![7; load.bytes], load.span / load.bytes as u64);
                let mut random = numbers(seed);
                while begun.elapsed() < load.window {
                    let place = random.next().expect("an endless sequence") % places;
                    let offset = place * load.bytes as u64;
                    if load.writes {
                        volume.write(offset, &data).await?;
                    } else {
                        volume.read(offset, load.bytes).await?;
                    }
                    count.set(count.get() + 1);
                }
                Ok::<_, VolumeError>(())
            })
        })
        .collect();
    for task in tasks {
        task.await?;
    }
    let per_s = f64::from(count.get()) / begun.elapsed().as_secs_f64();
    volume.disconnect().await;
    Ok(per_s)
}
