//! Put, get, list, remove; valid and invalid inputs.

use std::fs;

use crate::support::data::small_i32;
use crate::support::harness::{Array, binary};

#[test]
fn an_object_lives_from_put_to_rm() {
    let (bytes, _) = small_i32(10, 600_000);
    let array = Array::up(2, "1G");
    array.file("x.bin", &bytes);
    assert_eq!(array.csd(&["ls"]).expect(0, &[]).text(), "no objects\n");
    array.csd(&["put", "x.bin", "a/b c", "--type", "i32"]).expect(0, &[]);
    array.csd(&["put", "x.bin"]).expect(0, &[]);
    let listed = array.csd(&["ls", "--json"]).expect(0, &[]).json();
    let names: Vec<_> = listed["result"]["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|object| (object["name"].as_str().unwrap(), object["type"].as_str().unwrap()))
        .collect();
    assert_eq!(names, [("a/b c", "i32"), ("x.bin", "bytes")]);
    let stat = array.csd(&["stat", "a/b c"]).expect(0, &[]).text();
    assert!(stat.contains("600000") && stat.contains("d0 (") && stat.contains("d1 ("), "{stat}");
    array.csd(&["get", "a/b c"]).expect(0, &[]);
    assert!(fs::read(array.path("b c")).unwrap() == bytes);
    assert!(array.csd(&["get", "x.bin", "-"]).expect(0, &[]).stdout == bytes);

    let words = ["object \"x.bin\" exists and is immutable", "csd rm"];
    array.csd(&["put", "x.bin"]).expect(2, &words);
    array.csd(&["rm", "x.bin"]).expect(0, &[]);
    for command in [&["rm", "x.bin"][..], &["get", "x.bin", "-"], &["stat", "x.bin"]] {
        array.csd(command).expect(2, &["there is no object \"x.bin\""]);
    }
    // The name is free again, and its epoch has grown.
    let put = array.csd(&["put", "x.bin", "--json"]).expect(0, &[]).json();
    assert!(put["result"]["epoch"].as_u64().unwrap() > 1, "{put}");
}

#[test]
fn removing_gives_the_room_back() {
    let array = Array::up(2, "1G");
    array.file("x.bin", &vec![5; 40 << 20]);
    for on in ["kv", "block"] {
        for round in 0..4 {
            array.csd(&["put", "x.bin", "x", "--on", on]).expect(0, &[]);
            array.csd(&["rm", "x"]).expect(0, &[]);
            for drive in array.drives() {
                assert_eq!(drive["block_used_bytes"], 0, "{on}, round {round}");
                // Tombstones stay.
                let used = drive["kv_used_bytes"].as_u64().unwrap();
                assert!(used < 10_000, "{on}, round {round}: {used}");
            }
        }
    }
}

#[test]
fn a_csv_column_is_stored_by_name_and_by_number() {
    let array = Array::up(2, "1G");
    let mut text = "id,price\n".to_owned();
    for index in 0..50_000 {
        text.push_str(&format!("{index},{}.5\n", index % 11));
    }
    array.file("t.csv", text.as_bytes());
    for (name, column) in [("by-name", "price"), ("by-number", "2")] {
        array.csd(&["put", "t.csv", name, "--csv", "--column", column]).expect(0, &[]);
        let count = ["run", "count", name, "--equal", "3.5", "--on", "all", "--json"];
        let counted = array.csd(&count).expect(0, &[]).json();
        let expected = (0..50_000).filter(|index| index % 11 == 3).count();
        assert_eq!(counted["result"]["count"], expected);
        assert_eq!(counted["result"]["elements"], 50_000);
    }
    let stdin = array.path("t.csv");
    let put = ["put", "-", "piped", "--csv", "--column", "id", "--type", "i32"];
    array.csd_with(&put, Some(&stdin)).expect(0, &[]);
    let count = ["run", "count", "piped", "--equal", "49999", "--json"];
    assert_eq!(array.csd(&count).expect(0, &[]).json()["result"]["count"], 1);
}

#[test]
fn a_csv_value_that_is_no_number_names_its_place_and_leaves_nothing_behind() {
    let array = Array::up(2, "1G");
    // The bad line lies in the third chunk: chunks before it were sent.
    let mut text = "price\n".to_owned();
    (0..300_000).for_each(|_| text.push_str("1\n"));
    text.push_str("twelve\n");
    array.file("t.csv", text.as_bytes());
    let put = ["put", "t.csv", "--csv", "--column", "price", "--type", "f64"];
    let words = ["t.csv, line 300002, column \"price\": \"twelve\" is not a valid f64"];
    array.csd(&put).expect(2, &words);
    assert_eq!(array.csd(&["ls", "--all"]).expect(0, &[]).text(), "no objects\n");
    for drive in array.drives() {
        assert!(drive["kv_used_bytes"].as_u64().unwrap() < 10_000, "{drive}");
    }
    array.csd(&["put", "t.csv", "--csv", "--column", "cost"]).expect(2, &["no column \"cost\""]);
}

#[test]
fn numpy_arrays_keep_type_and_shape() {
    let array = Array::up(2, "1G");
    let npy = |descr: &str, shape: &str, data: &[u8]| {
        let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend_from_slice(&u16::try_from(dict.len()).unwrap().to_le_bytes());
        file.extend_from_slice(dict.as_bytes());
        file.extend_from_slice(data);
        file
    };
    let (data, sevens) = small_i32(11, 600_000);
    array.file("a.npy", &npy("<i4", "(600, 1000)", &data));
    let stored = array.csd(&["put", "a.npy", "--json"]).expect(0, &[]).json();
    assert_eq!(stored["result"]["shape"], serde_json::json!([600, 1000]));
    assert_eq!(stored["result"]["type"], "i32");
    let count = ["run", "count", "a.npy", "--equal", "7", "--json"];
    assert_eq!(array.csd(&count).expect(0, &[]).json()["result"]["count"], sevens);
    for (file, words) in [
        (npy(">i4", "(1,)", &[0; 4]), "big-endian"),
        (npy("<u2", "(2,)", &[0; 4]), "not supported"),
        (npy("<i4", "(2,)", &[0; 4]), "only 4 follow"),
        (npy("<i4", "(1,)", &[0; 8]), "more follow"),
        (b"text".to_vec(), "ends within its header"),
    ] {
        array.file("bad.npy", &file);
        array.csd(&["put", "bad.npy"]).expect(2, &["bad.npy", words]);
    }
    let put = ["put", "a.npy", "again", "--type", "f32"];
    array.csd(&put).expect(2, &["the file says its elements are i32"]);
}

#[test]
fn wrong_use_is_told_with_exit_code_2() {
    let array = Array::up(1, "1G");
    array.file("x.bin", &[1; 13]);
    array.csd(&["put", "x.bin", "bytes"]).expect(0, &[]);
    array.file("y.bin", &[1; 16]);
    array.csd(&["put", "y.bin", "i32", "--type", "i32"]).expect(0, &[]);
    for (command, words) in [
        ("run count none --equal 1", "there is no object \"none\""),
        ("run count i32 --equal 1.5", "\"1.5\" is not an i32"),
        ("run count i32 --equal 99999999999", "out of the range of i32"),
        ("run count bytes --equal 1", "cannot be compared with one number"),
        ("put x.bin odd --type i32", "13 bytes, which is not a whole number of i32"),
        ("put .", ". is a folder"),
        ("put -", "needs a name"),
        ("put x.bin x --chunk 5000", "must be a power of two"),
        ("put x.bin x --chunk 16M", "must be a power of two"),
        ("put x.bin x --type i33", "\"i33\" is not an element type"),
        ("get i32 .", ". is a folder"),
        ("--array none.toml ls", "there is no array file none.toml"),
        ("frobnicate", "unrecognized subcommand"),
    ] {
        array.csd(&command.split(' ').collect::<Vec<_>>()).expect(2, &[words]);
    }
    // Errors of the operating system are not wrong use.
    for (command, words) in
        [("put none.bin", "none.bin: No such file"), ("get i32 /nowhere/x", "No such file")]
    {
        array.csd(&command.split(' ').collect::<Vec<_>>()).expect(1, &[words]);
    }
    array.csd(&["put", "x.bin", ""]).expect(2, &["1 to 1024 bytes"]);
    array.csd(&["put", "x.bin", "a\nb"]).expect(2, &["control characters"]);
    array.csd(&["put", "y.bin", "f64", "--type", "f64"]).expect(0, &[]);
    let nan = ["run", "count", "f64", "--equal", "nan"];
    array.csd(&nan).expect(2, &["NaN equals nothing"]);
}

#[test]
fn errors_are_json_too() {
    let array = Array::up(1, "1G");
    let failed = array.csd(&["stat", "none", "--json"]).expect(2, &[]).json();
    assert_eq!(
        failed,
        serde_json::json!({
            "schema": 1,
            "command": "stat",
            "error": {
                "class": "usage", "exit_code": 2, "message": "there is no object \"none\"",
            },
        })
    );
    let failed = array.csd(&["run", "count", "--json"]).expect(2, &[]).json();
    assert_eq!(failed["error"]["class"], "usage");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let array = Array::up(1, "1G");
    array.file("x.bin", &vec![1; 20 << 20]);
    array.csd(&["put", "x.bin", "x"]).expect(0, &[]);
    let binary = binary().display().to_string();
    let script = format!("{binary} get x - | head -c 10 | wc -c; echo ${{PIPESTATUS[0]}}");
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(array.folder.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "10\n0\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_result_says_that_it_has_no_digest() {
    let array = Array::up(2, "256M");
    array.file("x.bin", &[1; 4000]);
    array.csd(&["put", "x.bin", "a", "--type", "i32"]).expect(0, &[]);
    let digest =
        |name: &str| array.csd(&["stat", name, "--json"]).json()["result"]["blake3"].clone();
    assert_eq!(digest("a").as_str().map(str::len), Some(64));
    for on in ["drives", "host"] {
        array.csd(&["run", "vector-add", "a", "a", "-o", on, "--on", on]).expect(0, &[]);
        assert!(digest(on).is_null());
        let stat = array.csd(&["stat", on]).expect(0, &[]).text();
        assert!(stat.contains("none: drives wrote it; their checksums guard it"), "{stat}");
        let got = array.csd(&["get", on, on]).expect(0, &[]).text();
        assert!(got.contains("checksums are right"), "{got}");
    }
}
