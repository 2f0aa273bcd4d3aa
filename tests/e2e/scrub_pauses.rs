//! `csd scrub` that is interrupted and goes on, and that keeps to a rate.

use std::process::Stdio;
use std::time::{Duration, Instant};

use csd_initiator::Kv;
use csd_nvme::kv::Key;
use csd_reactor::Buffer;
use csd_tests::proxy::Door;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::data::bytes;
use crate::support::direct::on_objects;
use crate::support::harness::{Array, finish, signal, wait_until};
use crate::support::pieces::CHUNK;
use crate::support::proxied::{EXECUTE, ProxiedArray};
use crate::support::scrub::scrubbed;

/// Replaces the value with these bytes, on the drive that has it.
fn replace(array: &Array, content: &[u8]) {
    for drive in 0..array.drives().len() {
        let content = content.to_vec();
        on_objects(array, drive, async move |kv: &Kv| {
            let keys = kv.list_all(&[]).await.unwrap();
            for key in keys.iter().filter(|key: &&Key| key.as_bytes().len() == 16) {
                let stored = kv.retrieve(key, 1 << 20).await.unwrap().unwrap();
                if stored[..] == content {
                    kv.store(key, vec![Buffer::from_slice(&[9; CHUNK])], 0).await.unwrap();
                }
            }
        });
    }
}

/// Returns the objects with bad pieces.
fn damaged(result: &Value) -> Vec<&str> {
    let bad = result["bad"].as_array().unwrap();
    bad.iter().map(|bad| bad["object"].as_str().unwrap()).collect()
}

#[test]
fn an_interrupted_scrub_goes_on_and_misses_nothing() {
    let proxied = ProxiedArray::new(Array::up(2, "256M"));
    let short = ["a", "b", "c", "d", "e", "f", "g", "h"];
    // At the rate, each short object takes a second, and the long one minutes: it is not over when
    // the signal comes.
    let objects = short.map(|name| (name, 4)).into_iter().chain([("y", 1200), ("z", 4)]);
    for (seed, (name, chunks)) in (0..).zip(objects) {
        proxied.array.file("x", &bytes(seed, chunks * CHUNK));
        proxied.array.csd(&["put", "x", name, "--chunk", "4K"]).expect(0, &[]);
    }
    replace(&proxied.array, &bytes(0, CHUNK));
    replace(&proxied.array, &bytes(9, CHUNK));
    proxied.proxy.cut(EXECUTE, &[], Door::Open);
    let slow = proxied.array.spawn(&ProxiedArray::arguments("scrub --rate 8K"), Stdio::null());
    // The first object takes three at most: its pieces are read again one by one.
    wait_until("it is past the first object", || proxied.proxy.passed() > 3);
    signal(slow.child.id(), Signal::INT);
    let first = finish(slow).expect(1, &[]).json()["error"].clone();
    let message = first["message"].as_str().unwrap();
    let from = message.strip_prefix("interrupted: go on with --from ");
    let from = from.unwrap_or_else(|| panic!("{message}")).trim_matches('"');
    assert!(from > "a" && from < "z", "{message}");
    assert_eq!(damaged(&first["detail"]), ["a"]);
    let second = scrubbed(&proxied.array, &["--from", from], 4);
    assert_eq!(damaged(&second), ["z"], "{from}");
    let number = |result: &Value, field: &str| result[field].as_u64().unwrap();
    let done = number(&first["detail"], "objects");
    assert!(done > 0, "{first}");
    // Each object is scrubbed to its end by one of them, and no piece by neither.
    assert_eq!(done + number(&second, "objects"), 10, "{first} {second}");
    let whole = scrubbed(&proxied.array, &[], 4);
    let read = number(&first["detail"], "chunks") + number(&second, "chunks");
    assert!(read >= number(&whole, "chunks"), "{first} {second}");
    assert_eq!(damaged(&whole), ["a", "z"]);
}

#[test]
fn a_scrub_takes_as_long_as_its_rate_says() {
    let array = Array::up(2, "128M");
    array.file("x", &bytes(1, 64 * CHUNK));
    for name in ["v", "w"] {
        array.csd(&["put", "x", name, "--chunk", "4K", "--on", "block"]).expect(0, &[]);
    }
    let begun = Instant::now();
    let found = scrubbed(&array, &["--rate", "128K"], 0);
    // Each drive has 32 chunks of each object. A slow machine only takes longer.
    let least = Duration::from_secs(2 * 32 * CHUNK as u64 / (128 << 10));
    assert!(begun.elapsed() >= least, "{:?}", begun.elapsed());
    assert_eq!(found["bytes"], 2 * 64 * CHUNK);
}
