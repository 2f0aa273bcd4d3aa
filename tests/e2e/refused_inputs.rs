//! Objects that kernels cannot run over: the error names a remedy, and no output is left behind.

use crate::support::harness::Array;

fn bytes(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Asserts wrong use, with these words, and that no object of that name exists afterwards.
#[track_caller]
fn refused(array: &Array, arguments: &[&str], words: &[&str]) {
    array.csd(arguments).expect(2, words);
    let listed = array.csd(&["ls", "--all"]).expect(0, &[]).text();
    assert!(!listed.contains("new"), "{listed}");
}

fn array(drives: usize) -> Array {
    let array = Array::up(drives, "1G");
    array.file("sorted", &bytes(&(0..300_000).collect::<Vec<_>>()));
    array.file("other", &bytes(&(0..300_000).map(|i| i * 2).collect::<Vec<_>>()));
    array.file("short", &bytes(&[1, 2, 3]));
    array
}

#[test]
fn vector_add_names_what_differs() {
    let array = array(3);
    for (file, name, options) in [
        ("sorted", "a", &["--type", "i32"][..]),
        ("short", "short", &["--type", "i32"]),
        ("sorted", "floats", &["--type", "f32", "--align", "a"]),
        ("sorted", "bytes", &[]),
        ("other", "small", &["--type", "i32", "--chunk", "64K"]),
        ("other", "cut", &["--type", "i32", "--layout", "range"]),
    ] {
        array.csd(&[&["put", file, name], options].concat()).expect(0, &[]);
    }
    let add = |b: &str, words: &[&str]| {
        refused(&array, &["run", "vector-add", "a", b, "-o", "new"], words);
    };
    add("short", &["\"a\" has 300000 elements and \"short\" has 3", "equally many"]);
    add("floats", &["\"a\" is of type i32 and \"floats\" of type f32"]);
    add("small", &["have chunks of different sizes: put \"small\" again with --align \"a\""]);
    add("nobody", &["there is no object \"nobody\""]);
    refused(&array, &["run", "vector-add", "bytes", "bytes", "-o", "new"], &["are not numbers"]);
    refused(&array, &["run", "vector-add", "a", "cut", "-o", "new"], &["--align \"a\""]);
    array.csd(&["put", "other", "b", "--type", "i32", "--align", "a"]).expect(0, &[]);
    let words = ["object \"b\" exists and is immutable"];
    array.csd(&["run", "vector-add", "a", "b", "-o", "b"]).expect(2, &words);
    array.csd(&["run", "vector-add", "a", "b", "-o", "sum", "--check"]).expect(0, &[]);
}

#[test]
fn objects_that_begin_on_different_drives_are_told_to_be_aligned() {
    let array = array(4);
    array.csd(&["put", "sorted", "a", "--type", "i32"]).expect(0, &[]);
    let offset = |name: &str| {
        let stat = array.csd(&["stat", name, "--json"]).expect(0, &[]).json();
        stat["result"]["drives"].clone()
    };
    // The first drive of a small object is random: one of several tries begins on another drive.
    for name in ["b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10", "b11"] {
        array.csd(&["put", "other", name, "--type", "i32"]).expect(0, &[]);
        if offset(name) != offset("a") {
            let add = ["run", "vector-add", "a", name, "-o", "new"];
            let put = format!("put \"{name}\" again with --align \"a\"");
            return refused(&array, &add, &["begin on different drives", &put]);
        }
    }
    panic!("every object begins on the same drive");
}

#[test]
fn sorted_inputs_are_asked_for_by_element() {
    let array = array(2);
    array.file("unsorted", &bytes(&[1, 2, 5, 4]));
    let words = ["unsorted: element 3 is smaller than the one before: sort the numbers first"];
    let put = |file: &str, element: &str| {
        array.csd(&["put", file, "new", "--type", element, "--layout", "range"])
    };
    put("unsorted", "i32").expect(2, &words);
    let nan: Vec<u8> = [1f32, f32::NAN].iter().flat_map(|v| v.to_le_bytes()).collect();
    array.file("nan", &nan);
    put("nan", "f32").expect(2, &["nan: element 1 is NaN, which has no place in an order"]);
    put("short", "bytes").expect(2, &["are not numbers"]);
    // The error is far after the first chunk, when a part of the object is stored already.
    let mut late: Vec<i32> = (0..2_000_000).collect();
    late[1_900_000] = 7;
    array.file("late", &bytes(&late));
    put("late", "i32").expect(2, &["late: element 1900000 is smaller"]);
    assert_eq!(array.csd(&["ls", "--all"]).expect(0, &[]).text(), "no objects\n");
}

#[test]
fn merges_want_the_same_cuts() {
    let array = array(2);
    let range = ["--type", "i32", "--layout", "range", "--chunk", "64K"];
    array.csd(&[&["put", "sorted", "a"], &range[..]].concat()).expect(0, &[]);
    array.csd(&[&["put", "other", "b"], &range[..]].concat()).expect(0, &[]);
    array.csd(&["put", "other", "spread", "--type", "i32"]).expect(0, &[]);
    array.csd(&["put", "short", "wide", "--type", "i32", "--layout", "range"]).expect(0, &[]);
    let merge = |a: &str, b: &str, words: &[&str]| {
        refused(&array, &["run", "array-merge", a, b, "-o", "new"], words);
    };
    let cut = "are cut at different values: put \"b\" again with --align \"a\"";
    merge("a", "b", &[cut]);
    merge("a", "spread", &["\"spread\" is not cut by ranges", "--layout range", "--align"]);
    merge("a", "wide", &["chunks of different sizes: put \"wide\" again with --align \"a\""]);
    let floats = ["put", "sorted", "new", "--type", "f32", "--align", "a"];
    refused(&array, &floats, &["\"a\" is of type i32, not f32"]);
    let nothing = ["put", "sorted", "new", "--align", "nobody"];
    refused(&array, &nothing, &["there is no object \"nobody\""]);
}

#[test]
fn parts_that_are_too_long_for_an_execution_say_what_to_do() {
    let array = array(1);
    // All equal: one part, however long; at 4 KiB a chunk an execution takes 1 MiB.
    array.file("equal", &bytes(&vec![7; 300_000]));
    array.file("one", &bytes(&[7]));
    let range = ["--type", "i32", "--layout", "range", "--chunk", "4K"];
    array.csd(&[&["put", "equal", "a"], &range[..]].concat()).expect(0, &[]);
    array.csd(&["put", "one", "b", "--type", "i32", "--align", "a"]).expect(0, &[]);
    let words = ["part 0 has 294 chunks, and an execution takes 256", "use larger chunks"];
    refused(&array, &["run", "array-merge", "a", "b", "-o", "new"], &words);
    array.file("edges", b"0 1\n0 2\n");
    array.csd(&["put", "edges", "g", "--graph"]).expect(0, &[]);
    refused(&array, &["put", "one", "new", "--align", "g"], &["\"g\" is cut by rows"]);
}

#[test]
fn verify_wants_pages_that_divide_chunks() {
    let array = array(2);
    array.csd(&["put", "sorted", "x", "--chunk", "64K"]).expect(0, &[]);
    let verify = |page: &str| array.csd(&["run", "verify", "x", "--page-bytes", page]);
    verify("5000").expect(2, &["pages of 5000 bytes do not divide the chunks of \"x\""]);
    verify("128K").expect(2, &["do not divide"]);
    verify("0").expect(2, &["the page size is 0"]);
    let wrong = ["run", "verify", "x", "--page-bytes", "64K", "-o", "new"];
    refused(&array, &wrong, &["make chunks of 4 bytes"]);
    array.csd(&["run", "verify", "x", "--unroll", "9"]).expect(2, &["--unroll"]);
}

#[test]
fn page_rank_wants_a_square_of_f32_and_rows_that_fit_an_execution() {
    let array = array(1);
    let npy = |element: &str, rows: usize, columns: usize, bytes: usize| {
        let header = format!(
            "{{'descr': '{element}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
        );
        let header = format!("{header:<117}\n");
        let length = u16::try_from(header.len()).unwrap().to_le_bytes();
        let data = vec![0; rows * columns * bytes];
        [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), &data].concat()
    };
    array.file("flat.npy", &npy("<f4", 2, 3, 4));
    array.file("wide.npy", &npy("<f8", 3, 3, 8));
    for name in ["flat", "wide"] {
        let file = format!("{name}.npy");
        array.csd(&["put", &file, name, "--layout", "rows"]).expect(0, &[]);
    }
    let rank = |name: &str, words: &[&str]| refused(&array, &["run", "page-rank", name], words);
    rank("flat", &["\"flat\" is 2 x 3: page rank needs a square"]);
    rank("wide", &["\"wide\" is of type f64: dense rows are f32"]);
    // Every node points at node 0, so its row is longer than 256 chunks of 4 KiB.
    let star: String = (1..300_000).map(|node| format!("{node} 0\n")).collect();
    array.file("star", star.as_bytes());
    array.csd(&["put", "star", "star", "--graph", "--chunk", "4K"]).expect(0, &[]);
    let words = ["part 0 has ", "and an execution takes 256", "larger chunks: a row is never cut"];
    rank("star", &words);
    array.csd(&["put", "star", "fits", "--graph"]).expect(0, &[]);
    array
        .csd(&["run", "page-rank", "fits", "--iterations", "2", "--check"])
        .expect(4, &["not settled"]);
}

#[test]
fn a_graph_without_an_edge_ranks_all_nodes_alike() {
    let array = array(2);
    array.file("none", b"# nobody\n");
    array.csd(&["put", "none", "g", "--graph", "--nodes", "5"]).expect(0, &[]);
    let rank = ["run", "page-rank", "g", "--on", "all", "-o", "ranks"];
    array.csd(&rank).expect(0, &[]);
    let ranks = array.csd(&["get", "ranks", "-"]).expect(0, &[]).stdout;
    let ranks = ranks.as_chunks().0.iter().map(|rank| f64::from_le_bytes(*rank));
    let ranks: Vec<f64> = ranks.collect();
    assert_eq!(ranks.len(), 5);
    assert!(ranks.iter().all(|rank| (rank - 0.2).abs() < 1e-12), "{ranks:?}");
}

#[test]
fn page_rank_wants_whole_rows_and_a_node() {
    let array = array(2);
    array.csd(&["put", "sorted", "x", "--type", "f32"]).expect(0, &[]);
    let rank = |arguments: &[&str], words: &[&str]| {
        refused(&array, &[&["run", "page-rank"], arguments].concat(), words);
    };
    rank(&["x"], &["may be split across drives", "--layout rows", "--graph"]);
    array.file("none", b"# nobody\n");
    rank(&["new", "--edges", "none"], &["none has no edges"]);
    array.file("odd", b"0 1\n2\n");
    rank(&["new", "--edges", "odd"], &["odd, line 2: an edge is two node numbers"]);
    array.file("far", b"0 9\n");
    rank(&["new", "--edges", "far", "--nodes", "5"], &["edge 0 names node 9, but there are 5"]);
    array.csd(&["run", "page-rank", "new", "--edges", "missing"]).expect(1, &["missing: No such"]);
    array.file("edges", b"0 1\n1 0\n");
    array.csd(&["put", "edges", "g", "--graph"]).expect(0, &[]);
    rank(&["g", "--damping", "1.5"], &["the damping is from 0 to 1"]);
    rank(&["g", "--tolerance=-1"], &["the tolerance is 0 or more"]);
    let rows = ["put", "sorted", "new", "--type", "f32", "--layout", "rows"];
    refused(&array, &rows, &["rows need an array of two dimensions: store it as .npy"]);
    array.csd(&["run", "count", "x", "--equal", "nan"]).expect(2, &["--equal nan"]);
}
