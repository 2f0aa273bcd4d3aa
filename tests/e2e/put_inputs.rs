//! User input: several files, names with common beginnings, sizes, empty cells, weights.

use std::fs;

use serde_json::json;

use crate::support::data::npy;
use crate::support::harness::Array;

#[test]
fn several_files_are_put_and_removed_in_one_command() {
    let array = Array::up(2, "256M");
    fs::create_dir(array.path("in")).unwrap();
    for (file, byte) in [("in/a", 1), ("b", 2), ("c", 3)] {
        array.file(file, &[byte; 1000]);
    }
    let said = array.csd(&["put", "--each", "in/a", "b", "c"]).expect(0, &[]).text();
    assert_eq!(said.lines().count(), 3, "{said}");
    for (name, byte) in [("a", 1), ("b", 2), ("c", 3)] {
        assert!(said.contains(&format!("{name}: 1,000 bytes")), "{said}");
        assert_eq!(array.csd(&["get", name, "-"]).expect(0, &[]).stdout, [byte; 1000]);
    }
    // Each failure is reported with its name, and the other files are done.
    array.csd(&["rm", "b"]).expect(0, &[]);
    let words =
        ["3 of 4 failed", "a: object \"a\" exists", "error: none: No such", "-: an object from"];
    array.csd(&["put", "--each", "in/a", "none", "-", "b"]).expect(1, &words);
    array.csd(&["stat", "b"]).expect(0, &[]);
    let failed = array.csd(&["rm", "none", "b", "a", "--json"]).expect(2, &[]).json();
    let detail = &failed["error"]["detail"];
    assert_eq!(detail["objects"], json!([{ "name": "b" }, { "name": "a" }]));
    assert_eq!(detail["failed"][0]["item"], "none");
    let removed = array.csd(&["rm", "c", "--json"]).expect(0, &[]).json();
    assert_eq!(removed["result"], json!({ "name": "c" }));
    let put = array.csd(&["put", "--each", "b", "c", "--quiet", "--json"]).expect(0, &[]).json();
    assert_eq!(put["result"]["objects"][1]["name"], "c");
}

#[test]
fn the_second_word_of_a_put_is_a_name_even_if_a_file_has_it() {
    let array = Array::up(1, "256M");
    array.file("a", &[1; 10]);
    array.file("b", &[2; 10]);
    array.csd(&["put", "a", "b"]).expect(0, &[]);
    assert_eq!(array.csd(&["get", "b", "-"]).expect(0, &[]).stdout, [1; 10]);
    array.csd(&["put", "a", "b", "c"]).expect(2, &["two words", "--each"]);
    array.csd(&["rm", "b"]).expect(0, &[]);
    array.csd_with(&["put", "-", "b"], Some(&array.path("a"))).expect(0, &[]);
    assert_eq!(array.csd(&["get", "b", "-"]).expect(0, &[]).stdout, [1; 10]);
    // A list of one file is a list.
    let put = array.csd(&["put", "--each", "a", "--json"]).expect(0, &[]).json();
    assert_eq!(put["result"]["objects"][0]["name"], "a");
}

#[test]
fn a_list_can_be_of_names_that_begin_alike() {
    let array = Array::up(1, "256M");
    array.file("x", b"x");
    for name in ["logs/1", "logs/2", "data"] {
        array.csd(&["put", "x", name]).expect(0, &[]);
    }
    let listed = array.csd(&["ls", "logs/", "--json"]).expect(0, &[]).json();
    assert_eq!(listed["result"]["objects"].as_array().unwrap().len(), 2);
    let text = array.csd(&["ls", "logs/"]).expect(0, &[]).text();
    assert!(text.contains("logs/2") && !text.contains("data"), "{text}");
    let none = array.csd(&["ls", "Logs"]).expect(0, &[]).text();
    assert_eq!(none, "no objects whose names begin with \"Logs\"\n");
}

#[test]
fn one_thing_is_singular_and_a_size_is_said_once() {
    let array = Array::up(1, "256M");
    for (bytes, said) in [(0, "0 bytes in 0 chunks"), (1, "1 byte in 1 chunk")] {
        array.file("x", &vec![7; bytes]);
        let text = array.csd(&["put", "x", "--type", "bytes"]).expect(0, &[]).text();
        assert_eq!(text, format!("x: {said} on 1 drive\n"));
        array.csd(&["rm", "x"]).expect(0, &[]);
    }
    array.file("x", &vec![7; 3 << 19]);
    let text = array.csd(&["put", "x", "--chunk", "64K"]).expect(0, &[]).text();
    assert_eq!(text, "x: 1.5 MiB (1,572,864 bytes) in 24 chunks on 1 drive\n");
}

#[test]
fn sizes_are_read_as_people_write_them() {
    for (size, bytes) in [("0.25G", 1 << 28), ("300MB", 300_000_000), ("256MiB", 1 << 28)] {
        let array = Array::up_on_files(1, size);
        let media = fs::metadata(array.path("csd-array/d0.media")).unwrap().len();
        assert!(media <= bytes && bytes - media < 1 << 20, "{size}: {media}");
    }
}

#[test]
fn an_empty_cell_is_what_the_user_says() {
    let array = Array::up(1, "256M");
    array.file("t.csv", b"day,price\n1,1.5\n2,\n3,2.5\n");
    let put = ["put", "t.csv", "x", "--csv", "--column", "price"];
    array.csd(&put).expect(2, &["line 3", "\"\" is not a valid f64", "--empty"]);
    let nan = f64::NAN.to_le_bytes();
    for (empty, second) in [("nan", Some(nan)), ("0", Some([0; 8])), ("skip", None)] {
        array.csd(&[&put[..], &["--empty", empty]].concat()).expect(0, &[]);
        let mut expected = 1.5f64.to_le_bytes().to_vec();
        expected.extend(second.into_iter().flatten());
        expected.extend(2.5f64.to_le_bytes());
        assert_eq!(array.csd(&["get", "x", "-"]).expect(0, &[]).stdout, expected, "{empty}");
        array.csd(&["rm", "x"]).expect(0, &[]);
    }
    let integers = [&put[..], &["--type", "i32", "--empty", "nan"]].concat();
    array.csd(&integers).expect(2, &["no i32 is NaN"]);
    array.csd(&["put", "t.csv", "y", "--empty", "0"]).expect(2, &["--csv"]);
}

#[test]
fn a_first_row_is_no_header_unless_it_is_certain_or_said() {
    let array = Array::up(1, "256M");
    let put = |text: &str, options: &[&str]| {
        array.file("t.csv", text.as_bytes());
        array.csd(&[&["put", "t.csv", "x", "--csv"], options].concat())
    };
    let wide = "t.csv, line 1, column 1: \"99999999999\" is not a valid i32";
    put("99999999999\n1\n2\n", &["--type", "i32"]).expect(2, &[wide]);
    put("NA\n1\n2\n", &[]).expect(2, &["\"NA\" is not a valid f64", "--header yes|no"]);
    put("NA\n1\n2\n", &["--header", "no"]).expect(2, &["line 1, column 1: \"NA\""]);
    put("1\n\n3\n", &[]).expect(2, &["line 2, column 1", "--empty"]);
    put("1\n\"2\n3\n", &[]).expect(2, &["a quote that opens in line 2 is not closed"]);
    let (second, cells) = (["--column", "2"], "id,price\n1,2.5\n2,3.5\n");
    let stored = |text: &str, options: &[&str], said: &str, values: &[f64]| {
        let text = put(text, options).expect(0, &[]).text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], said);
        let kept: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(array.csd(&["get", "x", "-"]).expect(0, &[]).stdout, kept);
        array.csd(&["rm", "x"]).expect(0, &[]);
    };
    let header = "t.csv: CSV, column 2 of 2, \"price\", header in line 1";
    stored(cells, &second, header, &[2.5, 3.5]);
    let years = "t.csv: CSV, column 2 of 2, \"2020\", header in line 1";
    stored("2019,2020\n1,2\n", &["--header", "yes", "--column", "2020"], years, &[2.0]);
    stored("2019,2020\n1,2\n", &second, "t.csv: CSV, column 2 of 2, no header", &[2020.0, 2.0]);
    let one = "t.csv: CSV, column 1 of 1, no header";
    stored("1\n\n3\n\n", &["--empty", "0"], one, &[1.0, 0.0, 3.0]);
    let read = put(cells, &[&second[..], &["--json"]].concat()).expect(0, &[]).json();
    let read = &read["result"]["read"];
    let expected = json!({ "format": "csv", "column": 2, "header": "price", "header_line": 1 });
    assert_eq!(*read, expected);
}

#[test]
fn edges_of_networkx_are_read_and_weights_are_not_dropped_in_silence() {
    let array = Array::up(1, "256M");
    array.file("plain", b"0 1\n1 2\n2 0\n0 2\n");
    array.file("networkx", b"# written by write_edgelist\n0 1 {}\n1 2 {}\n2 0 {}\n0 2 {}\n");
    array.file("weighted", b"0 1 {'weight': 3}\n1 2 {'weight': 1}\n2 0 0.5\n0 2 1\n");
    array.csd(&["put", "plain", "--graph"]).expect(0, &[]);
    array.csd(&["put", "networkx", "--graph"]).expect(0, &[]);
    let words = ["weighted, line 1", "weights are not used", "--ignore-weights"];
    array.csd(&["put", "weighted", "--graph"]).expect(2, &words);
    array.csd(&["put", "weighted", "--graph", "--ignore-weights"]).expect(0, &[]);
    let rows = |name: &str| array.csd(&["get", name, "-"]).expect(0, &[]).stdout;
    assert!(rows("networkx") == rows("plain") && rows("weighted") == rows("plain"));
    let rank = ["run", "page-rank", "ranked", "--edges", "weighted"];
    array.csd(&rank).expect(2, &words);
    array.csd(&[&rank[..], &["--ignore-weights"]].concat()).expect(0, &[]);
}

#[test]
fn a_graph_of_another_program_does_not_become_another_graph() {
    let array = Array::up(1, "256M");
    array.file("plain", b"0 1\n1 2\n2 1\n2 2\n");
    array.csd(&["put", "plain", "--graph"]).expect(0, &[]);
    let rows = |name: &str| array.csd(&["get", name, "-"]).expect(0, &[]).stdout;
    let banner = "%%MatrixMarket matrix coordinate pattern general\n";
    for (name, text, options, said) in [
        ("mtx", format!("{banner}3 3 4\n1 2\n2 3\n3 2\n3 3\n"), &[][..], "MatrixMarket"),
        ("konect", "% asym\n1 2\n2 3\n3 2\n3 3\n".into(), &[], "KONECT"),
        ("snap", "# Nodes: 3 Edges: 4\n0\t1\n1\t2\n2\t1\n2\t2\n".into(), &[], "SNAP"),
        ("one", "1 2\n2 3\n3 2\n3 3\n".into(), &["--base", "1"], "numbers from 1, stored from 0"),
    ] {
        array.file(name, text.as_bytes());
        let put = [&["put", name, "--graph"], options].concat();
        let text = array.csd(&put).expect(0, &[]).text();
        assert!(text.contains(said) && text.contains("3 nodes, all with edges, 4 edges"), "{text}");
        assert!(rows(name) == rows("plain"), "{name}");
    }
    let ranked = ["run", "page-rank", "ranked", "--edges", "mtx"];
    let ranked = array.csd(&ranked).expect(0, &[]).text();
    assert!(ranked.starts_with("mtx: MatrixMarket, numbers from 1"), "{ranked}");
    for (text, word) in [
        ("3 3\n2 3\n1 3\n1 2\n", "--format list"),
        ("4 3\n0 1\n1 2\n2 3\n", "--format list"),
        ("1 2\n2 3\n", "--base 0 or --base 1"),
        ("# Undirected graph: x\n0 1\n", "--directed no"),
        ("p edge 3 1\ne 1 2\n", "DIMACS"),
        ("% sym positive\n1 2 7\n", "--ignore-weights"),
    ] {
        array.file("other", text.as_bytes());
        array.csd(&["put", "other", "--graph"]).expect(2, &["other", word]);
        array.csd(&["run", "page-rank", "g", "--edges", "other"]).expect(2, &["other", word]);
    }
    array.csd(&["put", "plain", "x", "--base", "1"]).expect(2, &["--graph"]);
}

#[test]
fn arrays_that_cannot_be_objects_are_stored_as_bytes_among_others() {
    let array = Array::up(1, "256M");
    let odd = [
        ("u2", "<u2", "(2,)"),
        ("b1", "|b1", "(4,)"),
        ("U1", "<U1", "(1,)"),
        ("big", ">i4", "(1,)"),
    ];
    array.file("good.npy", &npy("<i4", "(1L,)", &[7; 4]));
    array.file("short.npy", &npy("<i4", "(2,)", &[7; 4]));
    let mut put = vec!["put", "--each", "good.npy", "short.npy"];
    let names: Vec<String> = odd.iter().map(|(name, ..)| format!("{name}.npy")).collect();
    for ((_, descr, shape), name) in odd.iter().zip(&names) {
        array.file(name, &npy(descr, shape, &[1; 4]));
        array.csd(&["put", name]).expect(2, &[&format!("{name} is not a usable"), "--type bytes"]);
        put.push(name);
    }
    let done = array.csd(&put).expect(0, &["note: u2.npy: stored as bytes: it is not a usable"]);
    assert!(!done.stderr.contains("--type bytes"), "{}", done.stderr);
    assert_eq!(done.stderr.matches("note: ").count(), 5, "{}", done.stderr);
    for (name, (_, descr, shape)) in names.iter().zip(odd) {
        let kept = array.csd(&["get", name, "-"]).expect(0, &[]).stdout;
        assert_eq!(kept, npy(descr, shape, &[1; 4]), "{name}");
    }
    let stat = array.csd(&["stat", "good.npy", "--json"]).expect(0, &[]).json();
    assert_eq!(stat["result"]["type"], "i32");
    // Programs read the same in the answer.
    array.csd(&["rm", "good.npy", "u2.npy"]).expect(0, &[]);
    let done = array.csd(&["put", "--each", "good.npy", "u2.npy", "--json"]).expect(0, &[]).json();
    let notes = done["result"]["notes"].as_array().unwrap();
    assert_eq!((notes.len(), &notes[0]["item"]), (1, &"u2.npy".into()));
    assert!(notes[0]["message"].as_str().unwrap().starts_with("stored as bytes"), "{notes:?}");
    // With a type, and alone, nothing is stored as something else.
    array.csd(&["put", "--each", "u2.npy", "--type", "i32"]).expect(2, &["u2.npy is not a usable"]);
    array.csd(&["put", "u2.npy", "other"]).expect(2, &["--type bytes"]);
}

#[test]
fn types_have_numpy_s_names() {
    let array = Array::up(1, "256M");
    array.file("x", &[0; 32]);
    for (given, stored) in [("complex128", "c64"), ("c16", "c64"), ("c64", "c64"), ("f4", "f32")] {
        array.csd(&["put", "x", given, "--type", given]).expect(0, &[]);
        let stat = array.csd(&["stat", given, "--json"]).expect(0, &[]).json();
        assert_eq!(stat["result"]["type"], stored, "{given}");
    }
    for two_f32 in ["complex64", "c8"] {
        array.csd(&["put", "x", "y", "--type", two_f32]).expect(2, &["NumPy's complex128"]);
    }
}
