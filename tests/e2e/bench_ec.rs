//! `csd bench ec`: structure and files of short measurements. Asserts no speed.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::harness::{Array, Done, finish, signal, wait_until};
use crate::support::json_page::Page;

/// Asserts the documented fields, and a warning with exit code 4; returns the result.
#[track_caller]
fn measured(done: &Done) -> Value {
    let said = done.json();
    let result = said["result"].clone();
    let wrong = Page::read().wrong("bench ec", "csd bench ec", &result);
    assert!(wrong.is_empty(), "{wrong:#?}\n{said}");
    let rows = result["measured"].as_array().unwrap();
    let doubtful = rows.iter().any(|row| row["inconclusive"] == true || row["behind"] == true);
    assert_eq!(done.code, if doubtful { 4 } else { 0 }, "{said}");
    result
}

#[test]
fn encodings_are_measured_and_written_for_csdplan() {
    let array = Array::without_drives();
    let files = ["-o", "ec.csv", "--write-profile", "ec.toml", "--record", "kept.jsonl"];
    let short = ["bench", "ec", "--sizes", "3x1,6x1", "--rounds", "2", "--pace", "none", "--json"];
    let result = measured(&array.csd(&[&short[..], &files].concat()));
    let rows = result["measured"].as_array().unwrap();
    let own: Vec<&Value> = rows.iter().filter(|row| row["encoder"] == "csd").collect();
    let sizes: Vec<_> = own.iter().map(|row| (&row["data"], &row["parity"])).collect();
    assert_eq!(sizes, [(&2.into(), &1.into()), (&4.into(), &2.into())]);
    let isal = rows.len() - own.len();
    assert_eq!(isal == 0, result["left_out"].to_string().contains("isal was not measured"));
    for row in rows {
        for side in ["host_s_quartiles", "drive_s_quartiles"] {
            let times = row[side].as_array().unwrap();
            assert!(times.len() == 3 && times.iter().all(|time| time.as_f64().unwrap() > 0.0));
        }
        assert!(row["devices"].as_u64().unwrap() > 0, "{row}");
    }
    let published = result["published"].as_array().unwrap();
    let points: Vec<_> = published.iter().map(|row| row["devices"].as_u64().unwrap()).collect();
    assert_eq!(points, [2, 3, 2, 5]);
    let text = fs::read_to_string(array.path("ec.csv")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0]), (3, "blocks,block_MB,ssd_s,csd_s"));
    assert!(lines[1].starts_with("3,1,") && lines[2].starts_with("6,1,"), "{text}");
    let profile = fs::read_to_string(array.path("ec.toml")).unwrap();
    assert_eq!(profile.matches("kernel = \"rs-4-2\"").count(), 2, "{profile}");
    assert_eq!(fs::read_to_string(array.path("kept.jsonl")).unwrap().lines().count(), rows.len());
    // A profile that was written sets the pace of the next measurement.
    let again = ["bench", "ec", "--sizes", "6x1", "--pace", "ec.toml", "--drive-power", "0.5"];
    let more = ["--rounds", "1", "--drives", "2", "--host-power", "1,0.5", "--json"];
    let result = measured(&array.csd(&[&again[..], &more].concat()));
    let own = |row: &&Value| row["encoder"] == "csd";
    let powers: Vec<_> = result["measured"].as_array().unwrap().iter().filter(own).collect();
    assert_eq!((powers.len(), &powers[1]["host_power"]), (2, &0.5.into()));
    let text = array.csd(&["bench", "ec", "--sizes", "3x1", "--rounds", "1", "--pace", "none"]);
    assert!([0, 4].contains(&text.code), "{}", text.stderr);
    let text = text.text();
    let (measured, published) = text.split_once("Published").unwrap();
    assert!(measured.contains("break-even drives") && published.contains("22.3"), "{published}");
}

#[test]
fn wrong_sizes_powers_paces_and_files_are_refused_before_anything_is_measured() {
    let array = Array::without_drives();
    for (options, words) in [
        (&["--sizes", "24"][..], &["BLOCKSxMB"][..]),
        (&["--sizes", "10x64"], &["multiple of 3"]),
        (&["--sizes", "51x64"], &["multiple of 3"]),
        (&["--sizes", "12x0"], &["multiple of 8000"]),
        (&["--sizes", "12x99999999999999"], &["at most 16 GB"]),
        (&["--sizes", "6x64"], &["newport-encode", "no point rs-4-2", "rs-16-8"]),
        (&["--drive-power", "0"], &["--drive-power"]),
        (&["--host-power", "1.5"], &["--host-power"]),
        (&["--drive-power", "2", "--pace", "none"], &["--drive-power", "--pace"]),
        (&["--drive-power", "2", "-o", "x.csv"], &["x.csv", "power 1"]),
        (&["--pace", "newport:newport"], &["no point rs-16-8"]),
        (&["--pace", "nowhere"], &["nowhere"]),
        (&["--isal", "nowhere.so"], &["nowhere.so", "ISA-L"]),
        (&["-o", "missing/x.csv"], &["there is no folder missing"]),
        (&["--rounds", "0"], &["--rounds"]),
        (&["--drives", "0"], &["--drives"]),
    ] {
        let code = if options == ["--pace", "nowhere"] { 1 } else { 2 };
        array.csd(&[&["bench", "ec"][..], options].concat()).expect(code, words);
    }
}

#[test]
fn an_interrupted_measurement_writes_nothing_and_leaves_no_drive() {
    let array = Array::without_drives();
    let long = ["bench", "ec", "--sizes", "12x64", "--rounds", "1000", "-o", "x.csv"];
    let running = array.spawn(&long, Stdio::null());
    let parent = running.child.id();
    // A child belongs to the thread that started it.
    let is_served = || {
        let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        let of = |task: fs::DirEntry| fs::read_to_string(task.path().join("children"));
        tasks.map(of).any(|found| found.is_ok_and(|found| !found.trim().is_empty()))
    };
    wait_until("a drive runs", is_served);
    signal(parent, Signal::INT);
    finish(running).expect(1, &["interrupted"]);
    assert!(!array.path("x.csv").exists() && !array.path("x.csv.new").exists());
}
