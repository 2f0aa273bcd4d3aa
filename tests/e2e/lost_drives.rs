//! Kernels and programs over protected objects while drives are lost, before a run and in the
//! middle of it: every kind of kernel and of output gives the same bits.

use serde_json::Value;

use crate::harness::{Array, numbers, root, small_i32};
use crate::protected::CHUNK;
use crate::proxy::{Door, EXECUTE, RETRIEVE};
use crate::reconnect::Cut;

/// Name of the object that a run writes.
const OUT: &str = "out";

/// Kinds of kernels and outputs: the line, the execution of the lost drive at which it is cut, and
/// true if the object `out` is written.
pub(crate) const RUNS: [(&str, usize, bool); 15] = [
    ("count a --equal 7", 3, false),
    ("count on-blocks --equal 7", 3, false),
    ("summarize a", 3, false),
    ("verify a", 3, false),
    ("verify on-blocks", 3, false),
    ("verify a --auto", 3, false),
    ("verify a -o out", 3, true),
    ("verify sorted -o out", 2, true),
    ("vector-add a b -o out", 3, true),
    ("vector-add on-blocks on-blocks -o out", 3, true),
    ("vector-add sorted again -o out", 2, true),
    ("array-merge sorted others -o out", 1, true),
    ("page-rank graph", 2, false),
    ("page-rank graph -o out", 2, true),
    ("page-rank matrix", 2, false),
];

const PROTECTED: [&str; 2] = ["--protect", "rs:2+1"];

fn i32s(values: impl IntoIterator<Item = i32>) -> Vec<u8> {
    values.into_iter().flat_map(i32::to_le_bytes).collect()
}

fn sorted(seed: u64, count: usize) -> Vec<u8> {
    let mut values: Vec<i32> =
        numbers(seed, count).map(|n| i32::try_from(n % 900_000).unwrap()).collect();
    values.sort_unstable();
    i32s(values)
}

/// Returns a .npy file of a square matrix.
fn matrix(n: u16) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({n}, {n}), }}");
    let header = format!("{header:<117}\n");
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    let value = |i: u16, j: u16| f32::from((i * 7 + j * 3) % 11) / (f32::from(n) * 5.0);
    let values = (0..n).flat_map(|i| (0..n).map(move |j| value(i, j)));
    let mut file = [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes()].concat();
    values.for_each(|value| file.extend(value.to_le_bytes()));
    file
}

/// Puts objects of every layout and placement, with these options.
pub(crate) fn put_all(array: &Array, more: &[&str]) {
    array.file("ints", &small_i32(1, 500_000).0);
    array.file("more", &small_i32(2, 500_000).0);
    array.file("rising", &sorted(3, 300_000));
    array.file("others", &sorted(4, 100_000));
    let edges: Vec<u64> = numbers(5, 20_000).map(|n| n % 1500).collect();
    let edges: Vec<String> =
        edges.chunks(2).map(|pair| format!("{} {}\n", pair[0], pair[1])).collect();
    array.file("edges", edges.concat().as_bytes());
    array.file("matrix.npy", &matrix(301));
    for line in [
        "ints a --type i32 --chunk 16K",
        "more b --type i32 --align a",
        "ints on-blocks --type i32 --chunk 16K --on block",
        "rising sorted --type i32 --layout range --chunk 16K",
        "rising again --type i32 --align sorted",
        "others others --type i32 --align sorted",
        "edges graph --graph --nodes 1500 --chunk 4K",
        "matrix.npy matrix --layout rows --chunk 4K",
    ] {
        let line: Vec<&str> = line.split(' ').collect();
        array.csd(&[&["put"], &line[..], more].concat()).expect(0, &[]);
    }
}

/// Returns the answer of a report, without times and places, and the bytes of the output.
pub(crate) fn answer(array: &Array, report: &Value, writes: bool) -> (Value, Vec<u8>) {
    let mut result = report["result"].clone();
    let fields = result.as_object_mut().unwrap();
    // `--auto` chooses settings by what the kernel takes.
    for name in ["runs", "output", "units", "pages_per_unit", "unroll"] {
        fields.remove(name);
    }
    let mut written = Vec::new();
    if writes {
        written = array.csd(&["get", OUT, "-"]).stdout;
        assert!(!written.is_empty());
        let removed = array.csd(&["rm", OUT]);
        assert!(matches!(removed.code, 0 | 4), "{}", removed.stderr);
    }
    (result, written)
}

#[test]
fn every_kernel_and_output_survives_the_loss_of_a_drive_before_and_in_a_run() {
    let cut = Cut::new(Array::up(3, "512M"));
    put_all(&cut.array, &PROTECTED);
    let line = |line: &str, on: &str| format!("run {line} --on {on}");
    let mut expected = Vec::new();
    for (kernel, execution, writes) in RUNS {
        let line = line(kernel, "drives");
        let words: Vec<&str> = line.split(' ').chain(["--json"]).collect();
        let report = cut.array.csd(&words);
        // The ranks of the matrix do not settle.
        assert!(matches!(report.code, 0 | 4), "{kernel}: {}{}", report.text(), report.stderr);
        let whole = answer(&cut.array, &report.json(), writes);
        cut.proxy.cut(EXECUTE, &[execution], Door::Shut);
        let report = cut.array.csd(&Cut::proxied(&line)).expect(4, &[]).json();
        assert_eq!(cut.proxy.cuts(), 1, "{kernel}");
        cut.proxy.open();
        cut.proxy.cut(EXECUTE, &[], Door::Open);
        assert!(report["warnings"].to_string().contains("drive d1 ("), "{kernel}: {report}");
        assert_eq!(answer(&cut.array, &report, writes), whole, "{kernel}");
        expected.push(whole);
    }
    // The host reads chunks, and stores an output, with the same commands.
    for (kernel, writes) in [("count a --equal 7", false), ("vector-add a b -o out", true)] {
        cut.proxy.cut(RETRIEVE, &[20], Door::Shut);
        let report = cut.array.csd(&Cut::proxied(&line(kernel, "host"))).expect(4, &[]).json();
        assert_eq!(cut.proxy.cuts(), 1, "{kernel}");
        cut.proxy.open();
        cut.proxy.cut(RETRIEVE, &[], Door::Open);
        let at = RUNS.iter().position(|(of, ..)| *of == kernel).unwrap();
        assert_eq!(answer(&cut.array, &report, writes), expected[at], "{kernel}");
    }
    cut.array.kill(1);
    for ((kernel, _, writes), expected) in RUNS.into_iter().zip(expected) {
        for on in ["drives", "host", "split"] {
            let line = line(kernel, on);
            let words: Vec<&str> = line.split(' ').chain(["--json"]).collect();
            let report = cut.array.csd(&words).expect(4, &[]).json();
            assert!(report["warnings"].to_string().contains("drive d1 ("), "{kernel}: {report}");
            assert_eq!(answer(&cut.array, &report, writes), expected, "{kernel} on {on}");
        }
    }
}

#[test]
fn damaged_chunks_are_computed_for_runs_that_write_an_object() {
    use csd_initiator::Kv;
    use csd_nvme::kv::Key;
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
    for key in crate::protected::keys(&array, 1) {
        crate::failures::on_objects(&array, 1, async move |kv: &Kv| {
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
    let cut = Cut::new(Array::up(3, "512M"));
    let built = |name: &str| root(&format!("sdk/built/{name}.wasm")).to_str().unwrap().to_owned();
    let text: Vec<u8> = numbers(7, 12_000)
        .flat_map(|n| {
            format!("{}{n:x} needle\n", "x".repeat(usize::try_from(n % 90).unwrap())).into_bytes()
        })
        .collect();
    cut.array.file("log", &text);
    for line in ["log --chunk 16K", "log on-blocks --chunk 16K --on block"] {
        let line: Vec<&str> = line.split(' ').collect();
        cut.array.csd(&[&["put"], &line[..], &["--protect", "rs:2+1"]].concat()).expect(0, &[]);
    }
    assert!(text.len() > 12 * 4 * CHUNK);
    let (grep, sum) = (built("rust-grep"), built("rust-histogram"));
    let runs = [
        format!("{grep} --object log --parameter text:needle"),
        format!("{grep} --object on-blocks --parameter text:needle"),
        format!("{sum} --object log"),
    ];
    let line = |run: &str, on: &str| format!("program run {run} --on {on} --output seen --force");
    let seen = || std::fs::read(cut.array.path("seen")).unwrap();
    let mut expected = Vec::new();
    for run in &runs {
        let line = line(run, "drives");
        cut.array.csd(&line.split(' ').collect::<Vec<_>>()).expect(0, &[]);
        let whole = seen();
        cut.proxy.cut(EXECUTE, &[3], Door::Shut);
        let report = cut.array.csd(&Cut::proxied(&line)).expect(4, &[]).json();
        assert_eq!(cut.proxy.cuts(), 1, "{run}");
        cut.proxy.open();
        cut.proxy.cut(EXECUTE, &[], Door::Open);
        assert!(report["warnings"].to_string().contains("drive d1 ("), "{run}: {report}");
        assert!(!whole.is_empty() && seen() == whole, "{run}");
        expected.push(whole);
    }
    cut.array.kill(1);
    for (run, expected) in runs.iter().zip(expected) {
        for on in ["drives", "host", "split"] {
            let line = line(run, on);
            cut.array.csd(&line.split(' ').collect::<Vec<_>>()).expect(4, &["drive d1"]);
            assert!(seen() == expected, "{run} on {on}");
        }
    }
}
