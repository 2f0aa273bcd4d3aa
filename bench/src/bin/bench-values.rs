//! Stores or fetches values from several threads, and prints the seconds as JSON: the Rust side of
//! `bench/python/pairs.py`.
//!
//! `bench-values URL put|get VALUES BYTES THREADS`

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use csd_client::{Client, Settings};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, what, values, bytes, threads] = &words[..] else {
        return Err("usage: bench-values URL put|get VALUES BYTES THREADS".into());
    };
    let (values, bytes): (usize, usize) = (values.parse()?, bytes.parse()?);
    let client = Client::connect(url, &Settings::from_environment()?)?;
    let (value, next) = (vec![7; bytes], AtomicUsize::new(0));
    let work = || -> Result<(), csd_client::Error> {
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= values {
                return Ok(());
            }
            let key = format!("v{number}");
            match what.as_str() {
                "put" => client.put(key.as_bytes(), &value)?,
                _ => {
                    let found = client.get(key.as_bytes())?.map(|value| value.len());
                    assert_eq!(found, Some(bytes), "{key}");
                }
            }
        }
    };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let count = threads.parse().unwrap_or(1);
        let running: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        running.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    println!("{{\"seconds\": {}}}", begun.elapsed().as_secs_f64());
    Ok(client.close()?)
}
