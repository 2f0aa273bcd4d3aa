//! `csd top-k` and `csd histogram`: the items and counts of the machine's own sort, uniq and awk in
//! the C locale, wherever chunks end, in drives and on the host, with and without all drives.

use std::process::{Command, Stdio};

use crate::support::data::numbers;
use crate::support::harness::Array;
use crate::support::json_page::documented;

/// Runs a script in the array's folder, in the C locale; returns what it prints.
fn shell(array: &Array, script: &str) -> String {
    let mut command = Command::new("sh");
    command.current_dir(array.folder.path()).env("LC_ALL", "C").args(["-ec", script]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{script}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns lines of words and of numbers between commas; some occur often, and some are long.
fn lines(seed: u64, count: usize) -> String {
    let mut text = String::new();
    for draw in numbers(seed, count) {
        let word = draw % 17 * (draw % 3);
        match draw % 11 {
            0 => text += "\n",
            1 => text += &format!("{},{}\n", draw % 50, "x".repeat(usize::try_from(word).unwrap())),
            2 => text += &format!("  {} {}\n", "long".repeat(2000), draw % 2),
            _ => text += &format!("word{word} {},{} ,end\n", draw % 100, draw % 7),
        }
    }
    text + "the last,1"
}

/// Most frequent first, and equally frequent ones in the order of their bytes.
const SORTED: &str = "sort | uniq -c | sort -k1,1nr -s";

#[test]
fn the_most_frequent_items_are_those_of_sort_and_uniq() {
    let array = Array::up(3, "256M");
    let texts = [("short", lines(1, 3000)), ("b", lines(2, 400)), ("empty", String::new())];
    let options: [&[&str]; 3] = [&[], &["--on", "block"], &["--layout", "whole"]];
    for ((name, text), options) in texts.iter().zip(options) {
        array.file(name, text.as_bytes());
        array.csd(&[&["put", name, "--chunk", "4K"], options].concat()).expect(0, &[]);
    }
    // A last line without a newline is one all the same.
    let all = "awk 1 short; awk 1 b";
    let items: [(&[&str], &str); 4] = [
        (&[], "cat"),
        (&["--words"], "tr -s ' ' '\\n' | grep ."),
        (&["--field", "2"], "awk 'NF > 1 { print $2 }'"),
        (&["--field", "2", "-d", ","], "awk -F, 'NF > 1 { print $2 }'"),
    ];
    for (options, filter) in items {
        let expected = shell(&array, &format!("{{ {all}; }} | {filter} | {SORTED}"));
        let expected: Vec<&str> = expected.lines().collect();
        for (k, on) in [("5", "drives"), ("100000", "drives"), ("7", "host"), ("7", "split")] {
            let own = [&["top-k", "-k", k, "--on", on, "short", "empty", "b"], options].concat();
            let found = array.csd(&own).expect(0, &[]).text();
            let kept = expected.len().min(k.parse().unwrap());
            assert_eq!(found.lines().collect::<Vec<_>>(), expected[..kept], "{own:?}");
        }
    }
    let found = documented(&array, "top-k", &["short"], 0);
    let lines = texts[0].1.lines().count();
    assert_eq!(found["total"].as_u64().unwrap(), lines as u64);
    assert_eq!(found["items"][0]["item"], "");
}

#[test]
fn numbers_are_distributed_as_awk_finds_them() {
    let array = Array::up(2, "256M");
    array.file("x", lines(3, 2000).as_bytes());
    array.csd(&["put", "x", "--chunk", "4K"]).expect(0, &[]);
    let field = ["--field", "2", "-d", ","];
    let options = [&["x", "--min", "0", "--max", "7", "--bins", "7"], &field[..]].concat();
    let found = documented(&array, "histogram", &options, 0);
    let is_number = "awk -F, '$2 ~ /^ *[0-9]+ *$/ { print $2 + 0 }' x";
    let counts: Vec<u64> = (0..7)
        .map(|digit| {
            let count = format!("{is_number} | {{ grep -cx {digit} || true; }}");
            shell(&array, &count).trim().parse().unwrap()
        })
        .collect();
    let bins: Vec<u64> =
        found["bins"].as_array().unwrap().iter().map(|bin| bin[2].as_u64().unwrap()).collect();
    assert_eq!(bins, counts);
    assert_eq!(found["numbers"].as_u64().unwrap(), counts.iter().sum::<u64>());
    let others = "awk -F, 'NF > 1 && $2 !~ /^ *[0-9]+ *$/' x | wc -l";
    assert_eq!(found["others"].to_string(), shell(&array, others).trim());
    let text = array.csd(&[&["histogram"], &options[..]].concat()).expect(0, &[]).text();
    assert!(text.lines().nth(1).unwrap().ends_with('#'), "{text}");
    assert!(text.contains(" are no number, such as"), "{text}");
    for on in ["host", "split"] {
        let options = [&["histogram", "--on", on], &options[..]].concat();
        assert_eq!(array.csd(&options).expect(0, &[]).text(), text);
    }
}

#[test]
fn wrong_words_and_lost_drives_are_said() {
    let array = Array::up(3, "256M");
    array.file("x", lines(4, 500).as_bytes());
    array.csd(&["put", "x", "--chunk", "4K"]).expect(0, &[]);
    array.csd(&["put", "x", "p", "--chunk", "4K", "--protect", "rs:1+1"]).expect(0, &[]);
    array.csd(&["put", "x", "--type", "i32", "typed"]).expect(2, &[]);
    array.csd(&["top-k", "x", "-d", ","]).expect(2, &["--field"]);
    array.csd(&["top-k", "x", "-f", "0"]).expect(2, &["--field"]);
    array.csd(&["top-k", "x", "-f", "1", "-d", "ab"]).expect(2, &["one byte"]);
    array.csd(&["top-k", "x", "-w", "-f", "1"]).expect(2, &["--words"]);
    array.csd(&["histogram", "x", "--min", "2", "--max", "1"]).expect(2, &["--min 2 is greater"]);
    array.csd(&["histogram", "x", "--bins", "0"]).expect(2, &["--bins"]);
    array.csd(&["top-k", "missing"]).expect(2, &["missing"]);
    let some = array.csd(&["top-k", "missing", "x", "--json"]).expect(2, &[]).json();
    let detail = &some["error"]["detail"];
    assert_eq!(detail["failed"][0]["item"], "missing");
    assert_eq!(detail["objects"][0]["name"], "x");
    let before = array.csd(&["top-k", "p"]).expect(0, &[]).text();
    array.kill(0);
    assert_eq!(array.csd(&["top-k", "p"]).expect(4, &["d0"]).text(), before);
    array.csd(&["top-k", "x"]).expect(1, &["d0"]);
}
