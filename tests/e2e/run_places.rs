//! All ways to run return the number that the test counts itself.

use serde_json::Value;

use crate::support::data::{numbers, small_i32};
use crate::support::harness::Array;

/// Runs all three ways and checks the report of each.
fn check_all(array: &Array, object: &str, equal: &str, count: u64, elements: u64) {
    let arguments =
        ["run", "count", object, "--equal", equal, "--on", "all", "--cores", "2", "--json"];
    let answer = array.csd(&arguments).expect(0, &[]).json();
    assert_eq!(answer["schema"], 1);
    assert_eq!(answer["command"], "run count");
    let result = &answer["result"];
    assert_eq!((&result["count"], &result["elements"]), (&count.into(), &elements.into()));
    assert_eq!(result["checked"], true);
    let bytes = result["bytes"].as_u64().unwrap();
    let runs = result["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    for (run, way) in runs.iter().zip(["drives", "host", "split"]) {
        assert_eq!((&run["on"], &run["count"]), (&Value::from(way), &count.into()));
        let shares = run["shares"].as_array().unwrap();
        let shared: u64 = shares.iter().map(|share| share["elements"].as_u64().unwrap()).sum();
        assert_eq!(shared, elements, "{way}: {shares:?}");
        let crossed = run["crossed_bytes"].as_u64().unwrap();
        match way {
            // Answers cross the wire, data does not.
            "drives" => assert!(crossed < 100_000, "{crossed} bytes crossed"),
            "host" => assert!(crossed >= bytes, "{crossed} of {bytes} bytes crossed"),
            _ => {}
        }
        let host_works = shares.iter().any(|share| {
            share["who"].as_str().unwrap().starts_with("host") && share["elements"] != 0
        });
        assert!(way != "drives" || !host_works, "{shares:?}");
    }
}

#[test]
fn drives_host_and_split_agree_on_both_placements_for_every_number_of_drives() {
    let (bytes, sevens) = small_i32(1, 2_500_003);
    for drives in [1, 2, 4] {
        let array = Array::up(drives, "1G");
        array.file("x.bin", &bytes);
        for on in ["kv", "block"] {
            let put = array.csd(&["put", "x.bin", on, "--type", "i32", "--on", on, "--json"]);
            let stored = put.expect(0, &[]).json();
            assert_eq!(stored["result"]["chunks"], 10);
            assert_eq!(stored["result"]["drives"].as_array().unwrap().len(), drives);
            check_all(&array, on, "7", sevens, 2_500_003);
            check_all(&array, on, "-1", 0, 2_500_003);
        }
    }
}

#[test]
fn every_chunk_size_gives_the_same_answer_and_the_same_bytes_back() {
    let (bytes, sevens) = small_i32(2, 700_001);
    // Large enough for values of 4 MiB.
    let array = Array::up(2, "8G");
    array.file("x.bin", &bytes);
    for on in ["kv", "block"] {
        for chunk in ["4K", "64K", "4M"] {
            let name = format!("{on}-{chunk}");
            let put = ["put", "x.bin", &name, "--type", "i32", "--on", on, "--chunk", chunk];
            array.csd(&put).expect(0, &[]);
            check_all(&array, &name, "7", sevens, 700_001);
            array.csd(&["get", &name, "back", "--force"]).expect(0, &[]);
            assert!(std::fs::read(array.path("back")).unwrap() == bytes, "{name} differs");
        }
    }
}

#[test]
fn every_element_type_is_counted_by_ieee_equality() {
    let array = Array::up(2, "1G");
    let draws: Vec<u64> = numbers(3, 100_003).map(|n| n % 50).collect();
    let i64s: Vec<u8> = draws.iter().flat_map(|n| n.cast_signed().to_le_bytes()).collect();
    // Of floats 0 is -0.0, 1 is NaN, 2 is infinity.
    let special = |n: u64| match n {
        0 => -0.0,
        1 => f64::NAN,
        2 => f64::INFINITY,
        n => f64::from(u32::try_from(n).unwrap()) / 2.0,
    };
    let f64s: Vec<u8> = draws.iter().flat_map(|n| special(*n).to_le_bytes()).collect();
    #[allow(clippy::cast_possible_truncation)] // halves of small numbers are exact
    let f32s: Vec<u8> = draws.iter().flat_map(|n| (special(*n) as f32).to_le_bytes()).collect();
    let times = |drawn: u64| draws.iter().filter(|n| **n == drawn).count() as u64;
    for (element, bytes, cases) in [
        ("i64", i64s, vec![("9", times(9)), ("-9", 0), ("9223372036854775807", 0)]),
        ("f64", f64s, vec![("0.0", times(0)), ("inf", times(2)), ("4.5", times(9))]),
        ("f32", f32s, vec![("-0.0", times(0)), ("inf", times(2)), ("4.5", times(9))]),
    ] {
        array.file("x.bin", &bytes);
        array.csd(&["put", "x.bin", element, "--type", element]).expect(0, &[]);
        for (equal, count) in cases {
            check_all(&array, element, equal, count, 100_003);
        }
    }
}

#[test]
fn an_empty_object_counts_nothing_everywhere() {
    let array = Array::up(2, "1G");
    array.file("nothing", b"");
    for on in ["kv", "block"] {
        array.csd(&["put", "nothing", on, "--type", "f64", "--on", on]).expect(0, &[]);
        check_all(&array, on, "0", 0, 0);
        array.csd(&["get", on, "back", "--force"]).expect(0, &[]);
        assert_eq!(std::fs::read(array.path("back")).unwrap(), b"");
    }
}

#[test]
fn the_table_for_people_has_a_row_for_every_way() {
    let (bytes, sevens) = small_i32(4, 300_000);
    let array = Array::up(2, "1G");
    array.file("x.bin", &bytes);
    array.csd(&["put", "x.bin", "x", "--type", "i32"]).expect(0, &[]);
    let text = array.csd(&["run", "count", "x", "--equal", "7", "--on", "all"]).expect(0, &[]);
    let lines: Vec<String> = text.text().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 5, "{lines:?}");
    for (line, way) in lines[1..4].iter().zip(["drives", "host", "split"]) {
        assert!(
            line.starts_with(way)
                && line.contains(&format!("{},{:03}", sevens / 1000, sevens % 1000)),
            "{line}"
        );
    }
    assert_eq!(lines[4], "answers agree");
    let checked = ["run", "count", "x", "--equal", "7", "--check", "--json"];
    let runs = array.csd(&checked).expect(0, &[]).json()["result"]["runs"].clone();
    assert_eq!(runs.as_array().unwrap().len(), 2);
}
