//! Drives that do not answer while they are measured: a figure with such a time in it is marked,
//! and after the time-out the command names the drive.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;

use crate::support::drive::Drive;
use crate::support::harness::{Array, Running, finish, signal, wait_until};

/// Measurements that last until the drive has been silent.
const CHARACTERIZE: &str = "characterize --size 64M --cores 1 --repeat 20 -o p.toml --json";
const BLOCK: &str = "bench block --pairs 5 --run-ms 200 --json";
const KV: &str = "bench kv --write --pairs 2 --keys 2000 --value-bytes 4000 --json";

/// Returns what a command that runs has said on standard error.
fn said(running: &Running) -> String {
    fs::read_to_string(running.output.path().join("err")).unwrap()
}

fn begin(array: &Array, words: &str, url: &str) -> Running {
    let option = if words.starts_with("bench") { "--url" } else { "--drive" };
    let words: Vec<&str> = words.split(' ').chain([option, url]).collect();
    array.spawn(&words, Stdio::null())
}

/// Returns the drive's number of reads and writes of hosts.
fn commands(drive: &Drive) -> u64 {
    let status = drive.array.csd(&["drive", "status", &drive.url(), "--json"]).expect(0, &[]);
    let health = status.json()["result"]["drives"][0]["health"].clone();
    health["host_reads"].as_u64().unwrap() + health["host_writes"].as_u64().unwrap()
}

/// Stops the drive in the middle of a measurement.
fn stop_amid(drive: &Drive, words: &str) -> Running {
    let before = commands(drive);
    let running = begin(&drive.array, words, &drive.url());
    wait_until("the drive is measured", || commands(drive) > before + 100);
    signal(drive.running.as_ref().unwrap().child.id(), Signal::STOP);
    running
}

fn go_on(drive: &Drive) {
    signal(drive.running.as_ref().unwrap().child.id(), Signal::CONT);
}

#[test]
fn figures_of_a_drive_that_was_silent_are_marked() {
    for words in [CHARACTERIZE, BLOCK, KV] {
        let drive = Drive::serve("memory", &["--size", "1G"]);
        let running = stop_amid(&drive, words);
        wait_until("the silence is said", || said(&running).contains("does not answer: waiting"));
        go_on(&drive);
        let done = finish(running).expect(4, &["at most 30 s"]).json();
        let warnings = done["warnings"].to_string();
        assert!(warnings.contains("did not answer for"), "{words}: {warnings}");
        assert!(warnings.contains(&drive.address().to_string()), "{words}: {warnings}");
        if words == CHARACTERIZE {
            let profile = fs::read_to_string(drive.array.path("p.toml")).unwrap();
            assert!(profile.contains("did not answer for"), "{profile}");
        } else {
            let result = &done["result"];
            let validity = result["validity"].as_str().unwrap();
            assert!(result["valid"] == false && validity.contains("did not answer"), "{result}");
        }
    }
}

#[test]
fn a_drive_that_stays_silent_is_named_with_the_time_out() {
    for words in [CHARACTERIZE, BLOCK, KV] {
        let drive = Drive::serve("memory", &["--size", "1G"]);
        let running = stop_amid(&drive, &format!("{words} --timeout 2.5"));
        let failed = finish(running);
        go_on(&drive);
        let failed = failed.expect(1, &[]).json();
        let message = failed["error"]["message"].as_str().unwrap();
        assert!(message.contains(&drive.address().to_string()), "{words}: {message}");
        assert!(message.contains("2.5 s"), "{words}: {message}");
    }
}
