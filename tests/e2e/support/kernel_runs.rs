//! Objects of every layout and placement, and runs of every kernel over them.

use serde_json::Value;

use crate::support::data::{i32s, npy, numbers, small_i32};
use crate::support::harness::Array;

/// Name of the object that a run writes.
pub(crate) const OUT: &str = "out";

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

fn sorted(seed: u64, count: usize) -> Vec<u8> {
    let mut values: Vec<i32> =
        numbers(seed, count).map(|n| i32::try_from(n % 900_000).unwrap()).collect();
    values.sort_unstable();
    i32s(values)
}

/// Returns a .npy file of a square matrix.
fn matrix(n: u16) -> Vec<u8> {
    let value = |i: u16, j: u16| f32::from((i * 7 + j * 3) % 11) / (f32::from(n) * 5.0);
    let values = (0..n).flat_map(|i| (0..n).map(move |j| value(i, j)));
    let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
    npy("<f4", &format!("({n}, {n})"), &bytes)
}

/// Puts objects of every layout and placement, with these options.
pub(crate) fn put_all_layouts(array: &Array, more: &[&str]) {
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
