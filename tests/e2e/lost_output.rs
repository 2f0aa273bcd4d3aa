//! Output that cannot be written, to standard output or to files: the exit code and the reason, of
//! every command; files stay as they were. A reader that has gone is no error.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::process::{Command, Stdio};

use crate::support::data::small_i32;
use crate::support::harness::{Array, Done, Running, binary, finish};

/// Runs `csd` with standard output redirected as a shell says.
fn redirected(array: &Array, arguments: &[&str], to: &str) -> Running {
    by_shell(array, arguments, &format!("exec \"$0\" \"$@\" > {to}"))
}

fn by_shell(array: &Array, arguments: &[&str], script: &str) -> Running {
    let words = [&["-c", script, binary().to_str().unwrap()], arguments].concat();
    array.spawn_as(Command::new("sh"), &words, Stdio::null())
}

fn to_full_disk(array: &Array, arguments: &[&str]) -> Done {
    finish(redirected(array, arguments, "/dev/full"))
}

#[test]
fn every_command_that_prints_says_that_its_output_is_lost() {
    let array = Array::up(2, "128M");
    let (bytes, _) = small_i32(51, 10_000);
    array.file("x.bin", &bytes);
    let url = array.url(0);
    let lines = "put x.bin x --type i32;put x.bin y --type i32 --align x;ls;stat x;scrub x;repair;\
        put --each x.bin;cat x.bin;du;sum x;cp x z;mv z z2;wc x.bin;top-k x.bin;\
        histogram x.bin;sync csd:none folder;export t.tar x;import t.tar t/;\
        run count x --equal 7;run vector-add x y -o sum;run summarize x --on host;get x -;\
        array status;array reclaim;array rebuild d0;array rebalance;protect x rs:1+1;\
        drive log;drive trace;drive status;kv put x.bin k --drive URL;kv ls --drive URL;\
        kv info --drive URL;\
        kv get k - --drive URL;kv exists k --drive URL;kv gc --drive URL;kv flush --drive URL;\
        kv rm k --drive URL;program list --drive URL;rm y;secret new;completions bash;--help;\
        kv --help;--version;array up;array down";
    for line in lines.split(';') {
        let line = line.replace("URL", &url);
        let words: Vec<&str> = line.split(' ').collect();
        let done = to_full_disk(&array, &words);
        assert_eq!(done.code, 1, "csd {line}: {}", done.stderr);
        assert!(done.stderr.contains("No space left on device"), "csd {line}: {}", done.stderr);
    }
    array.csd(&["array", "up"]).expect(0, &[]);
    array.csd(&["put", "x.bin", "x", "--type", "i32"]).expect(0, &[]);
    for line in "ls;stat x;run count x --equal 7;array status;drive status;secret new".split(';') {
        let words: Vec<&str> = line.split(' ').chain(["--json"]).collect();
        to_full_disk(&array, &words).expect(1, &["No space left on device"]);
    }
    // Grep has an exit code of its own.
    array.csd(&["put", "x.bin"]).expect(0, &[]);
    to_full_disk(&array, &["grep", "", "x.bin"]).expect(2, &["No space left on device"]);
    // A reader that has gone, as `head` does.
    let mut command = Command::new(binary());
    command.current_dir(array.folder.path()).args(["ls"]).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

/// Returns the names of the folder's files.
fn names(array: &Array) -> BTreeSet<OsString> {
    fs::read_dir(array.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn files_that_cannot_be_written_stay_as_they_were() {
    let array = Array::up(1, "128M");
    let (bytes, _) = small_i32(52, 50_000);
    array.file("x.bin", &bytes);
    let url = array.url(0);
    array.csd(&["put", "x.bin", "x", "--type", "i32"]).expect(0, &[]);
    array.csd(&["kv", "put", "x.bin", "k", "--drive", &url]).expect(0, &[]);
    array.file("old", b"dear");
    let before = names(&array);
    let limited = |words: &[&str], blocks: u32| {
        let script = format!("ulimit -f {blocks}; trap '' XFSZ; exec \"$0\" \"$@\"");
        finish(by_shell(&array, words, &script))
    };
    let profile = "characterize --kernels count --size 64K --repeat 1 --media memory -o";
    for line in ["get x", "get x --force", "kv get k --drive URL --force", profile] {
        let line = line.replace("URL", &url);
        for file in ["new", "old"] {
            let words: Vec<&str> = line.split(' ').chain([file]).collect();
            if file == "old" && line == "get x" {
                continue;
            }
            limited(&words, 8).expect(1, &[&format!("cannot write {file}: File too large")]);
            assert_eq!(fs::read(array.path("old")).unwrap(), b"dear", "csd {line} {file}");
            assert_eq!(names(&array), before, "csd {line} {file}");
        }
    }
    // What was measured is printed, in fewer blocks, and lines are recorded whole or not at all.
    let bench = ["bench", "verify", "--engine", "rtl", "--sizes", "4K", "--record", "record"];
    let done = limited(&bench, 16).expect(4, &["are not recorded: cannot write record: File too"]);
    assert!(done.text().contains("cycles"), "{}", done.text());
    let record = fs::read_to_string(array.path("record")).unwrap();
    assert!(!record.is_empty() && record.ends_with('\n'), "{record}");
    for line in record.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn a_drive_whose_address_cannot_be_printed_serves_and_says_so() {
    let array = Array::without_drives();
    let serve = ["drive", "serve", "--media", "memory", "--size", "128M"];
    let options = ["--listen", "127.0.0.1:0", "--ready-file", "ready"];
    let mut running = redirected(&array, &[&serve[..], &options[..]].concat(), "/dev/full");
    let url = running.serves(&array.path("ready"));
    array.csd(&["kv", "ls", "--drive", &url]).expect(0, &[]);
    crate::support::harness::signal(running.child.id(), rustix::process::Signal::TERM);
    finish(running).expect(1, &["the output is not written: No space left on device"]);
}
