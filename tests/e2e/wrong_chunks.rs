//! Runs over chunks that are sound on their drive and not the ones that were put: kernels and
//! programs notice, wherever they work, and give the answer of the right bytes or none.

use csd_initiator::{Block, Kv};
use csd_nvme::kv::Key;
use csd_reactor::Buffer;
use serde_json::Value;

use crate::support::data::bytes;
use crate::support::direct::{on_blocks, on_objects};
use crate::support::harness::{Array, built};
use crate::support::kernel_runs::{RUNS, answer, put_all_layouts};
use crate::support::pieces::keys;

/// Drive whose chunks are changed.
const CHANGED: usize = 1;

/// Changes the first bytes of every piece that is a value: each is sound, and another one.
fn change_values(array: &Array) {
    let keys = keys(array, CHANGED);
    on_objects(array, CHANGED, async move |kv: &Kv| {
        for key in keys {
            let key = Key::new(&key).unwrap();
            let mut value = kv.retrieve(&key, 1 << 20).await.unwrap().unwrap().to_vec();
            value.iter_mut().take(9).for_each(|byte| *byte ^= 0x2A);
            kv.store(&key, vec![Buffer::from_slice(&value)], 0).await.unwrap();
        }
    });
}

/// Changes byte `at` of each of the first `count` chunks of `chunk_bytes` bytes on blocks.
fn change_blocks(array: &Array, chunk_bytes: u64, count: u64, at: usize) {
    change_each_block(array, chunk_bytes, count, at, |byte| byte ^ 0x2A);
}

fn change_each_block(
    array: &Array,
    chunk_bytes: u64,
    count: u64,
    at: usize,
    change: impl Fn(u8) -> u8 + Send + 'static,
) {
    on_blocks(array, CHANGED, async move |block: &Block| {
        for chunk in 0..count {
            let start = chunk * chunk_bytes + (at as u64 & !4095);
            let mut bytes = block.read(start, 4096).await.unwrap().to_vec();
            bytes[at % 4096] = change(bytes[at % 4096]);
            block.write(start, vec![Buffer::from_slice(&bytes)], false).await.unwrap();
        }
    });
}

#[test]
fn every_kernel_computes_chunks_that_are_not_those_that_were_put() {
    let array = Array::up(3, "512M");
    put_all_layouts(&array, &["--protect", "rs:2+1"]);
    let report = |line: &str, on: &str| {
        let line = format!("run {line} --on {on} --json");
        array.csd(&line.split(' ').collect::<Vec<_>>())
    };
    let whole: Vec<(Value, Vec<u8>)> = RUNS
        .into_iter()
        .map(|(kernel, _, writes)| answer(&array, &report(kernel, "drives").json(), writes))
        .collect();
    change_values(&array);
    change_blocks(&array, 16 << 10, 30, 77);
    for ((kernel, _, writes), whole) in RUNS.into_iter().zip(whole) {
        for on in ["drives", "host", "split"] {
            let report = report(kernel, on).expect(4, &[]).json();
            assert!(report["warnings"].to_string().contains("d1"), "{kernel} {on}: {report}");
            assert_eq!(answer(&array, &report, writes), whole, "{kernel} on {on}");
        }
    }
}

#[test]
fn without_protection_there_is_no_answer_of_other_bytes() {
    let array = Array::up(2, "256M");
    array.file("x", &bytes(1, 9 << 20));
    for on in ["kv", "block"] {
        let put = ["put", "x", on, "--type", "i32", "--chunk", "256K", "--on", on];
        array.csd(&put).expect(0, &[]);
    }
    change_values(&array);
    change_blocks(&array, 256 << 10, 3, 200_000);
    for (object, on) in ["kv", "block"].iter().flat_map(|o| ["drives", "host"].map(|on| (o, on))) {
        for kernel in ["count", "summarize"] {
            let mut line = vec!["run", kernel, object, "--on", on];
            line.extend(["--equal", "7"].iter().take(if kernel == "count" { 2 } else { 0 }));
            let done = array.csd(&line);
            assert_ne!(done.code, 0, "{kernel} {object} on {on}: {}", done.text());
            assert!(done.stderr.contains("d1"), "{}", done.stderr);
        }
    }
}

#[test]
fn an_input_without_checksums_takes_nothing_from_another_one() {
    let array = Array::up(2, "256M");
    array.file("x", &bytes(3, 1 << 20));
    array.csd(&["put", "x", "a", "--type", "i32", "--chunk", "64K"]).expect(0, &[]);
    // What a run has written has none.
    array.csd(&["run", "vector-add", "a", "a", "-o", "b"]).expect(0, &[]);
    array.csd(&["run", "vector-add", "a", "b", "-o", "c"]).expect(0, &[]);
    change_values(&array);
    array.csd(&["run", "count", "b", "--equal", "7"]).expect(0, &[]);
    let why = "a chunk is damaged, or not the one that was put";
    array.csd(&["run", "vector-add", "a", "b", "-o", "d"]).expect(1, &["drive d1", why]);
    array.csd(&["run", "vector-add", "b", "a", "-o", "d"]).expect(1, &["drive d1", why]);
}

/// A program that looks at the first bytes of each chunk alone, and fails if some of them are not
/// zero.
const ZEROS: &str = r#"(module
    (import "csd" "next" (func $next (param i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (func (export "csd_run") (result i64)
      (drop (call $next (i32.const 0) (i32.const 16) (i32.const 8)))
      (if (i64.ne (i64.load (i32.const 16)) (i64.const 0)) (then unreachable))
      (i64.const 1)))"#;

#[test]
fn a_program_that_fails_over_other_bytes_has_not_failed() {
    let array = Array::up(3, "2G");
    let zeros = array.file("zeros.wasm", &wat::parse_str(ZEROS).unwrap()).to_owned();
    array.file("x", &vec![0; 12 << 20]);
    let put = ["put", "x", "x", "--chunk", "2M", "--on", "block", "--protect", "rs:2+1"];
    array.csd(&put).expect(0, &[]);
    change_blocks(&array, 2 << 20, 2, 7);
    for on in ["drives", "host", "split"] {
        let run = ["program", "run", &zeros, "--object", "x", "--on", on, "--json"];
        assert_eq!(array.csd(&run).expect(4, &[]).json()["result"]["result"], "6", "on {on}");
    }
}

/// A program that looks at the first bytes of each chunk alone.
const FIRST: &str = r#"(module
    (import "csd" "next" (func $next (param i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (func (export "csd_run") (result i64)
      (drop (call $next (i32.const 0) (i32.const 16) (i32.const 8)))
      (i64.load (i32.const 16))))"#;

#[test]
fn a_program_that_ends_early_still_needs_the_chunk_that_was_put() {
    let array = Array::up(2, "2G");
    let first = array.file("first.wasm", &wat::parse_str(FIRST).unwrap()).to_owned();
    let content = bytes(2, 24 << 20);
    array.file("x", &content);
    array.csd(&["put", "x", "x", "--chunk", "2M", "--on", "block"]).expect(0, &[]);
    let run = |on| array.csd(&["program", "run", &first, "--object", "x", "--on", on, "--json"]);
    let firsts = content.chunks(2 << 20).map(|c| u64::from_le_bytes(c[..8].try_into().unwrap()));
    let sum = firsts.fold(0, u64::wrapping_add);
    for on in ["drives", "host"] {
        let said = run(on).expect(0, &[]).json();
        assert_eq!(said["result"]["result"], sum.to_string(), "on {on}");
    }
    change_blocks(&array, 2 << 20, 1, (2 << 20) - 1);
    for on in ["drives", "host"] {
        let done = run(on);
        assert!(done.code != 0 && done.text().contains("drive d1"), "{}", done.text());
    }
}

/// Returns lines of up to 102 bytes, each with a needle.
fn needles(count: usize) -> Vec<u8> {
    let line = |n: usize| format!("{n} {}needle\n", "x".repeat(n % 90)).into_bytes();
    (0..count).flat_map(line).collect()
}

/// Counts the lines with a needle, every way.
fn grep(array: &Array, object: &str, text: &[u8]) {
    let grep = built("rust-grep");
    for on in ["drives", "host", "split"] {
        let line = ["program", "run", &grep, "--object", object, "--parameter", "text:needle"];
        let to = ["--on", on, "--output", "seen", "--force"];
        array.csd(&[&line[..], &to].concat()).expect(4, &["d1"]);
        assert!(std::fs::read(array.path("seen")).unwrap() == text, "{object} on {on}");
    }
}

#[test]
fn a_chunk_that_has_lost_its_newlines_is_no_long_line() {
    let array = Array::up(3, "512M");
    let text = needles(40_000);
    array.file("log", &text);
    let put = ["put", "log", "log", "--chunk", "256K", "--on", "block", "--protect", "rs:2+1"];
    array.csd(&put).expect(0, &[]);
    on_blocks(&array, CHANGED, async |block: &Block| {
        block.write(0, vec![Buffer::zeroed(512 << 10)], false).await.unwrap();
    });
    grep(&array, "log", &text);
}

#[test]
fn a_newline_in_the_middle_of_a_long_line_is_not_one() {
    let array = Array::up(3, "256M");
    // Lines over several chunks, and one without an end.
    let long = |n: u32| format!("{n} {}needle\n", "x".repeat(40_000)).into_bytes();
    let text: Vec<u8> = [(0..8).flat_map(long).collect(), b"needle".repeat(5_000)].concat();
    array.file("log", &text);
    let put = ["put", "log", "log", "--chunk", "16K", "--on", "block", "--protect", "rs:2+1"];
    array.csd(&put).expect(0, &[]);
    change_each_block(&array, 16 << 10, 8, 3, |_| b'\n');
    grep(&array, "log", &[&text[..], b"\n"].concat());
}

#[test]
fn lines_that_cross_chunks_are_those_that_were_put() {
    let array = Array::up(3, "256M");
    let text = needles(6_000);
    array.file("log", &text);
    for line in ["log log --chunk 16K", "log on-blocks --chunk 16K --on block"] {
        let line: Vec<&str> = line.split(' ').collect();
        array.csd(&[&["put"], &line[..], &["--protect", "rs:2+1"]].concat()).expect(0, &[]);
    }
    change_values(&array);
    change_blocks(&array, 16 << 10, 8, 3);
    for object in ["log", "on-blocks"] {
        grep(&array, object, &text);
    }
}
