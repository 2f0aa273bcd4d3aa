//! Room for more objects: as much as the array reports, on both placements.

use std::fs::File;

use serde_json::Value;

use crate::support::harness::{Array, Done};

/// Makes a sparse file of this length.
fn long(array: &Array, name: &str, bytes: u64) {
    File::create(array.path(name)).unwrap().set_len(bytes).unwrap();
}

fn room(array: &Array, on: &str) -> u64 {
    let status = array.csd(&["array", "status", "--json"]).expect(0, &[]).json();
    status["result"]["room"][format!("{on}_bytes")].as_u64().unwrap()
}

fn put(array: &Array, file: &str, name: &str, on: &str) -> Done {
    array.csd(&["put", file, name, "--on", on, "--type", "bytes"])
}

#[test]
fn an_object_of_just_what_is_shown_fits_and_the_error_names_the_other_placement() {
    for drives in [1, 3] {
        let array = Array::up(drives, "512M");
        for (on, other) in [("kv", "block"), ("block", "kv")] {
            // Objects of all lengths, each with its entries in the catalogue.
            for (index, bytes) in [0, 1, 4096, 100_000, 1 << 20, 3_000_000].iter().enumerate() {
                long(&array, "some", *bytes);
                put(&array, "some", &format!("{on}{index}"), on).expect(0, &[]);
            }
            let shown = room(&array, on);
            assert!(shown > 8 << 20, "{drives} drives: {shown} bytes {on}");
            long(&array, "exact", shown);
            put(&array, "exact", &format!("{on}-exact"), on).expect(0, &[]);
            assert_eq!(room(&array, on), 0, "{drives} drives");
            let free = room(&array, other);
            // Long enough for chunks on every drive: the others may have a unit left.
            long(&array, "more", 8 << 20);
            let full = put(&array, "more", "rest", on).expect(1, &["is full", "objects can take"]);
            assert!(full.stderr.contains(&format!("(--on {other})")), "{}", full.stderr);
            let full = array.csd(&["put", "more", "--on", on, "--json"]).expect(1, &[]).json();
            let detail: &Value = &full["error"]["detail"]["room"];
            assert_eq!(detail[format!("{on}_bytes")], 0, "{full}");
            assert_eq!(detail[format!("{other}_bytes")], free, "{full}");
        }
        // A full array can still be emptied.
        array.csd(&["rm", "kv-exact", "block-exact"]).expect(0, &[]);
        put(&array, "more", "rest", "kv").expect(0, &[]);
    }
}

#[test]
fn most_of_what_values_are_given_holds_objects() {
    let array = Array::up(1, "1G");
    // A tenth is the reserve, four fifths of the rest are for values.
    let given = ((1u64 << 30) - (1 << 20)) / 10 * 9 / 5 * 4;
    let shown = room(&array, "kv");
    assert!(shown * 100 >= given * 85, "{shown} of {given}");
    long(&array, "exact", shown);
    put(&array, "exact", "all", "kv").expect(0, &[]);
    assert!(room(&array, "block") >= 64 << 20, "an array leaves space for blocks");
    array.csd(&["stat", "all"]).expect(0, &[]);
    array.csd(&["run", "verify", "all"]).expect(0, &[]);
}

#[test]
fn a_full_array_takes_what_was_removed_again() {
    let array = Array::up(2, "256M");
    let part = (room(&array, "kv") / 10) & !0xfffff;
    long(&array, "part", part);
    for round in 0..3 {
        for index in 0..10 {
            put(&array, "part", &format!("{round}-{index}"), "kv").expect(0, &[]);
        }
        put(&array, "part", "rest", "kv").expect(1, &["is full"]);
        let names: Vec<String> = (0..10).map(|index| format!("{round}-{index}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        array.csd(&[&["rm"], &names[..]].concat()).expect(0, &[]);
    }
}
