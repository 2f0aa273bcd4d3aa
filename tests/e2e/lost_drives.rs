//! Kernels and programs over protected objects while drives are lost, before a run and in the
//! middle of it: every kind of kernel and of output gives the same bits.

use csd_initiator::Kv;
use csd_nvme::kv::Key;
use csd_tests::proxy::Door;

use crate::support::data::{numbers, small_i32};
use crate::support::direct::on_objects;
use crate::support::harness::{Array, built};
use crate::support::kernel_runs::{OUT, RUNS, answer, put_all_layouts};
use crate::support::pieces::{CHUNK, keys};
use crate::support::proxied::{EXECUTE, ProxiedArray, RETRIEVE};

const PROTECTED: [&str; 2] = ["--protect", "rs:2+1"];

#[test]
fn every_kernel_and_output_survives_the_loss_of_a_drive_before_and_in_a_run() {
    let proxied = ProxiedArray::new(Array::up(3, "512M"));
    put_all_layouts(&proxied.array, &PROTECTED);
    let line = |line: &str, on: &str| format!("run {line} --on {on}");
    let mut expected = Vec::new();
    for (kernel, execution, writes) in RUNS {
        let line = line(kernel, "drives");
        let words: Vec<&str> = line.split(' ').chain(["--json"]).collect();
        let report = proxied.array.csd(&words);
        // The ranks of the matrix do not settle.
        assert!(matches!(report.code, 0 | 4), "{kernel}: {}{}", report.text(), report.stderr);
        let whole = answer(&proxied.array, &report.json(), writes);
        proxied.proxy.cut(EXECUTE, &[execution], Door::Shut);
        let report = proxied.array.csd(&ProxiedArray::arguments(&line)).expect(4, &[]).json();
        assert_eq!(proxied.proxy.cuts(), 1, "{kernel}");
        proxied.proxy.open();
        proxied.proxy.cut(EXECUTE, &[], Door::Open);
        assert!(report["warnings"].to_string().contains("drive d1 ("), "{kernel}: {report}");
        assert_eq!(answer(&proxied.array, &report, writes), whole, "{kernel}");
        expected.push(whole);
    }
    // The host reads chunks, and stores an output, with the same commands.
    for (kernel, writes) in [("count a --equal 7", false), ("vector-add a b -o out", true)] {
        proxied.proxy.cut(RETRIEVE, &[20], Door::Shut);
        let report = proxied
            .array
            .csd(&ProxiedArray::arguments(&line(kernel, "host")))
            .expect(4, &[])
            .json();
        assert_eq!(proxied.proxy.cuts(), 1, "{kernel}");
        proxied.proxy.open();
        proxied.proxy.cut(RETRIEVE, &[], Door::Open);
        let at = RUNS.iter().position(|(of, ..)| *of == kernel).unwrap();
        assert_eq!(answer(&proxied.array, &report, writes), expected[at], "{kernel}");
    }
    proxied.array.kill(1);
    for ((kernel, _, writes), expected) in RUNS.into_iter().zip(expected) {
        for on in ["drives", "host", "split"] {
            let line = line(kernel, on);
            let words: Vec<&str> = line.split(' ').chain(["--json"]).collect();
            let report = proxied.array.csd(&words).expect(4, &[]).json();
            assert!(report["warnings"].to_string().contains("drive d1 ("), "{kernel}: {report}");
            assert_eq!(answer(&proxied.array, &report, writes), expected, "{kernel} on {on}");
        }
    }
}

#[test]
fn damaged_chunks_are_computed_for_runs_that_write_an_object() {
    let array = Array::up(3, "256M");
    array.file("ints", &small_i32(1, 100_000).0);
    let put = ["put", "ints", "a", "--type", "i32", "--chunk", "16K", "--protect", "rs:2+1"];
    array.csd(&put).expect(0, &[]);
    let run = |on: &str, code: i32| {
        let line = ["run", "vector-add", "a", "a", "-o", OUT, "--on", on, "--json"];
        let report = array.csd(&line).expect(code, &[]).json();
        let output = report["result"]["output"]["drives"].clone();
        (answer(&array, &report, true), output)
    };
    let whole = run("drives", 0);
    for key in keys(&array, 1) {
        on_objects(&array, 1, async move |kv: &Kv| {
            kv.delete(&Key::new(&key).unwrap()).await.unwrap();
        });
    }
    // The drive is there, so its part of the output is.
    for on in ["drives", "host", "split"] {
        assert_eq!(run(on, 4), whole, "{on}");
    }
}

#[test]
fn an_output_without_protected_inputs_needs_every_drive() {
    let array = Array::up(3, "256M");
    array.file("ints", &small_i32(1, 100_000).0);
    let put = ["put", "ints", "a", "--type", "i32", "--chunk", "16K"];
    array.csd(&[&put[..], &["--protect", "rs:2+1"]].concat()).expect(0, &[]);
    array.csd(&["put", "ints", "b", "--type", "i32", "--align", "a"]).expect(0, &[]);
    array.kill(2);
    array.csd(&["run", "vector-add", "a", "b", "-o", OUT]).expect(1, &["drive d2", "is down"]);
    array.csd(&["stat", OUT]).expect(2, &["there is no object"]);
    // More drives than the parity covers.
    array.kill(0);
    array.csd(&["run", "count", "a", "--equal", "7"]).expect(1, &[]);
}

#[test]
fn programs_over_objects_survive_the_loss_of_a_drive_before_and_in_a_run() {
    let proxied = ProxiedArray::new(Array::up(3, "512M"));
    let text: Vec<u8> = numbers(7, 12_000)
        .flat_map(|n| {
            format!("{}{n:x} needle\n", "x".repeat(usize::try_from(n % 90).unwrap())).into_bytes()
        })
        .collect();
    proxied.array.file("log", &text);
    for line in ["log --chunk 16K", "log on-blocks --chunk 16K --on block"] {
        let line: Vec<&str> = line.split(' ').collect();
        proxied.array.csd(&[&["put"], &line[..], &["--protect", "rs:2+1"]].concat()).expect(0, &[]);
    }
    assert!(text.len() > 12 * 4 * CHUNK);
    let (grep, sum) = (built("rust-grep"), built("rust-histogram"));
    let runs = [
        format!("{grep} --object log --parameter text:needle"),
        format!("{grep} --object on-blocks --parameter text:needle"),
        format!("{sum} --object log"),
    ];
    let line = |run: &str, on: &str| format!("program run {run} --on {on} --output seen --force");
    let seen = || std::fs::read(proxied.array.path("seen")).unwrap();
    let mut expected = Vec::new();
    for run in &runs {
        let line = line(run, "drives");
        proxied.array.csd(&line.split(' ').collect::<Vec<_>>()).expect(0, &[]);
        let whole = seen();
        proxied.proxy.cut(EXECUTE, &[3], Door::Shut);
        let report = proxied.array.csd(&ProxiedArray::arguments(&line)).expect(4, &[]).json();
        assert_eq!(proxied.proxy.cuts(), 1, "{run}");
        proxied.proxy.open();
        proxied.proxy.cut(EXECUTE, &[], Door::Open);
        assert!(report["warnings"].to_string().contains("drive d1 ("), "{run}: {report}");
        assert!(!whole.is_empty() && seen() == whole, "{run}");
        expected.push(whole);
    }
    proxied.array.kill(1);
    for (run, expected) in runs.iter().zip(expected) {
        for on in ["drives", "host", "split"] {
            let line = line(run, on);
            proxied.array.csd(&line.split(' ').collect::<Vec<_>>()).expect(4, &["drive d1"]);
            assert!(seen() == expected, "{run} on {on}");
        }
    }
}
