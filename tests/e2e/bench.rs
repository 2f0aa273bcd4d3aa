//! `csd bench`: the structure of results, interruption, and drives of others. Asserts no speed.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::bench::{SHORT_KV, kv_workloads, measured, workloads};
use crate::support::drive::Drive;
use crate::support::harness::{Array, finish, signal, wait_until};
use crate::support::json_page::Page;
use crate::support::third_party;

/// Arguments of the shortest measurement.
const SHORT: [&str; 7] = ["bench", "block", "--pairs", "1", "--run-ms", "20", "--json"];

#[test]
fn values_are_filled_and_read_on_memory_and_file_and_recorded() {
    let array = Array::without_drives();
    let all = ["fill, sequential keys", "fill, random keys"].map(|name| name.to_owned());
    let reads = ["read, sequential keys, loopback", "read, random keys, loopback"];
    let arguments = [&SHORT_KV[..], &["--threads", "2", "--record", "kept.jsonl"]].concat();
    let loopback = all.clone().map(|name| name + ", loopback");
    assert_eq!(
        kv_workloads(array.csd(&arguments)),
        [&loopback[..], &reads.map(String::from)].concat()
    );
    let kept = fs::read_to_string(array.path("kept.jsonl")).unwrap();
    let kept: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(kept.len(), 4);
    assert!(kept.iter().all(|line| line["machine"].is_string() && line["validity"].is_string()));
    // Longer than a command of this drive transfers, in few operations.
    let long = ["bench", "kv", "--pairs", "1", "--keys", "3", "--value-bytes", "16M", "--json"];
    let on_file = kv_workloads(array.csd(&[&long[..], &["--media", "own.media"]].concat()));
    let shapes =
        all.iter().map(String::as_str).chain(["read, sequential keys", "read, random keys"]);
    let both = shapes.flat_map(|name| ["loopback", "file"].map(|of| format!("{name}, {of}")));
    assert_eq!(on_file, both.collect::<Vec<_>>());
    assert!(!array.path("own.media").exists() && !array.path("own.media.floor").exists());
    array.file("there", b"precious");
    array.csd(&["bench", "kv", "--media", "there"]).expect(2, &["there exists"]);
    assert_eq!(fs::read(array.path("there")).unwrap(), b"precious");
    for (option, wrong) in [("--value-bytes", "17M"), ("--value-bytes", "0"), ("--depth", "128")] {
        array.csd(&["bench", "kv", option, wrong]).expect(2, &[option]);
    }
    array.csd(&["bench", "kv", "--write"]).expect(2, &["--url"]);
}

/// Values of another drive are only read, unless `--write` is given; then its own are deleted.
#[test]
fn values_of_another_drive_are_as_before() {
    let drive = Drive::serve("memory", &["--kv-index", "ordered"]);
    let url = drive.url();
    let writes = || {
        let status = drive.array.csd(&["drive", "status", &url, "--json"]).expect(0, &[]).json();
        status["result"]["drives"][0]["health"]["host_writes"].as_u64().unwrap()
    };
    let keys = || drive.array.csd(&["kv", "ls", "--all", "--drive", &url]).expect(0, &[]).text();
    let measure =
        |more: &[&str]| drive.array.csd(&[&SHORT_KV[..], &["--url", &url], more].concat());
    let refused = |more: &[&str], words: &[&str]| {
        drive.array.csd(&[&["bench", "kv", "--url", &url], more].concat()).expect(2, words);
    };
    refused(&[], &["has no values to read", "--write"]);
    for (key, value) in [("a", "a value"), ("b", "another")] {
        drive.array.file(key, value.as_bytes());
        drive.array.csd(&["kv", "put", key, "--drive", &url]).expect(0, &[]);
    }
    let before = writes();
    let reads = ["read, sequential keys, loopback", "read, random keys, loopback"];
    assert_eq!(kv_workloads(measure(&[])), reads);
    assert_eq!(writes(), before, "a read stored something");
    assert_eq!(kv_workloads(measure(&["--write"])).len(), 4);
    assert!(writes() > before);
    assert_eq!(keys(), "a\nb\n", "its own values are gone, those of others are there");
    let endless = ["--pairs", "100000", "--keys", "3000", "--value-bytes", "1000"];
    let long = [&["bench", "kv", "--url", &url, "--write"], &endless[..]].concat();
    let running = drive.array.spawn(&long, Stdio::null());
    wait_until("it has stored a value", || keys().contains("csdb"));
    signal(running.child.id(), Signal::INT);
    finish(running).expect(1, &["interrupted"]);
    assert_eq!(keys(), "a\nb\n", "an interrupted measurement deletes its values");
    let block = format!("{url}?nsid=1");
    drive.array.csd(&["bench", "kv", "--url", &block]).expect(2, &["is no kv namespace"]);
    refused(&["--write", "--keys", "100000000"], &["bytes left", "fewer --keys"]);
}

/// Returns the processes with this text in their command line.
fn processes(with: &str) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |id: &u32| {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == with.as_bytes())
    };
    ids.filter(has).collect()
}

#[test]
fn a_measurement_has_the_documented_fields_and_is_recorded() {
    let array = Array::without_drives();
    let arguments = [&SHORT[..], &["--record", "kept.jsonl"]].concat();
    let result = measured(array.csd(&arguments));
    let wrong = Page::read().wrong("bench block", "csd bench block", &result);
    assert!(wrong.is_empty(), "{wrong:#?}\n{result}");
    assert_eq!(workloads(&result).len(), 6);
    assert_eq!(result["left_out"], Value::Array(vec![]));
    let kept = fs::read_to_string(array.path("kept.jsonl")).unwrap();
    let kept: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(kept.len(), 6);
    for (line, row) in kept.iter().zip(result["workloads"].as_array().unwrap()) {
        assert_eq!(line["workload"], row["workload"]);
        assert_eq!(line["ratio_quartiles"], row["ratio_quartiles"]);
        assert_eq!(line["arguments"].as_array().unwrap().len(), arguments.len());
        assert!(line["machine"].is_string() && line["validity"].is_string(), "{line}");
    }
}

#[test]
fn a_record_that_cannot_be_written_fails_before_the_measurement() {
    let done = Array::without_drives().csd(&[
        "bench",
        "block",
        "--pairs",
        "1000",
        "--record",
        "missing/x",
    ]);
    done.expect(1, &["missing/x: No such file"]);
}

/// The drive of a URL is only read, unless `--write` is given.
#[test]
fn another_drive_is_not_written_unless_asked_for() {
    let drive = Drive::serve("memory", &[]);
    let url = drive.url();
    let writes = || {
        let status = drive.array.csd(&["drive", "status", &url, "--json"]).expect(0, &[]).json();
        let health = &status["result"]["drives"][0]["health"];
        (health["host_writes"].as_u64().unwrap(), health["host_reads"].as_u64().unwrap())
    };
    assert_eq!(writes(), (0, 0));
    let result = measured(drive.array.csd(&[&SHORT[..], &["--url", &url]].concat()));
    let wrong = Page::read().wrong("bench block", "csd bench block", &result);
    assert!(wrong.is_empty(), "{wrong:#?}\n{result}");
    assert!(workloads(&result).iter().all(|name| name.contains("read")), "{result}");
    assert!(result["left_out"].to_string().contains("--write permits it"), "{result}");
    let (written, read) = writes();
    assert!(written == 0 && read > 0, "{written} writes and {read} reads");
    let result = measured(drive.array.csd(&[&SHORT[..], &["--url", &url, "--write"]].concat()));
    assert!(workloads(&result).iter().any(|name| name.contains("write")), "{result}");
    assert!(writes().0 > 0);
    let kv = format!("{url}?nsid=2");
    let refused = drive.array.csd(&["bench", "block", "--url", &kv]);
    refused.expect(2, &["is not a namespace of blocks"]);
    let none =
        drive.array.csd(&["bench", "block", "--url", "nvme+tcp://127.0.0.1:1/nqn.2014-08.x:y"]);
    none.expect(1, &["127.0.0.1:1"]);
}

/// Has other blocks, shorter queues, and completes reads by a response capsule.
#[test]
fn a_drive_of_another_maker_is_measured_within_its_limits() {
    let url = third_party::serve_blocks();
    let result =
        measured(Array::without_drives().csd(&[&SHORT[..], &["--url", &url, "--write"]].concat()));
    assert_eq!(workloads(&result), ["4 KiB random read, depth 1"]);
    let cpu = &result["workloads"][0]["cpu_us_per_io"];
    assert!(cpu["floor"].is_number() && cpu["drive"].is_null(), "{cpu}");
    let left_out = result["left_out"].to_string();
    assert!(left_out.contains("a queue takes 15 commands at a time"), "{left_out}");
}

/// No server outlives the command, whether it is asked to stop or killed.
#[test]
fn an_interrupted_measurement_leaves_no_server() {
    for (number, stop) in [Signal::INT, Signal::TERM, Signal::KILL].into_iter().enumerate() {
        let array = Array::without_drives();
        // The polling time marks the processes of this test.
        let mark = (800_000_000 + u64::from(std::process::id()) * 4 + number as u64).to_string();
        let what = if number == 0 { "kv" } else { "block" };
        let arguments = ["bench", what, "--pairs", "100000", "--spin-us", &mark];
        let running = array.spawn(&arguments, Stdio::null());
        wait_until("a server runs", || processes(&mark).len() > 1);
        signal(running.child.id(), stop);
        let done = finish(running);
        if stop == Signal::KILL {
            wait_until("the servers are gone", || processes(&mark).is_empty());
        } else {
            done.expect(1, &["interrupted"]);
            assert!(processes(&mark).is_empty(), "servers outlived their parent");
        }
    }
}

#[test]
fn verify_is_measured_by_combination_and_computed_for_the_circuit() {
    let array = Array::without_drives();
    let short = ["bench", "verify", "--sizes", "4K,60K", "--rounds", "1", "--run-ms", "1"];
    let more = ["--matrix", "--units", "2", "--record", "r.jsonl", "--json"];
    let measured = array.csd(&[&short[..], &more].concat());
    assert!([0, 4].contains(&measured.code), "{}", measured.stderr);
    let computed = array.csd(&["bench", "verify", "--engine", "rtl", "--json"]).expect(0, &[]);
    let page = Page::read();
    for done in [measured.json(), computed.json()] {
        let wrong = page.wrong("bench verify", "csd bench verify", &done["result"]);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
    let measured = measured.json()["result"]["combinations"].as_array().unwrap().len();
    let recorded = fs::read_to_string(array.path("r.jsonl")).unwrap().lines().count();
    // Sequential, adaptive, and 9 combinations of pages and unrolling for 1 and 2 units.
    assert_eq!((measured, recorded), (2 * 20, 2 * 20));
    let computed = computed.json();
    let computed = computed["result"]["combinations"].as_array().unwrap();
    assert_eq!(computed.len(), 3 * 4 * 19);
    let row = computed.iter().find(|row| {
        let is = |field: &str, value: u64| row[field] == value;
        is("bytes", 1 << 30) && is("lane_bits", 8) && is("units", 12)
    });
    assert_eq!(row.unwrap()["cycles"], 16_817_434);
    let text = array.csd(&["bench", "verify", "--engine", "rtl", "--sizes", "60K"]);
    let text = text.expect(0, &[]).text().to_string();
    assert!(text.contains("25x12") && text.contains("60 KiB"), "{text}");
    for wrong in ["0", "17G", "x"] {
        array.csd(&["bench", "verify", "--sizes", wrong]).expect(2, &["--sizes"]);
    }
    array.csd(&["bench", "verify", "--units", "0"]).expect(2, &["--units"]);
}
