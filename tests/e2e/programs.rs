//! `csd program`: an example of the SDK through its whole life on an array, and the answers of a
//! drive beyond loopback or with an allow-list.

use crate::support::drive::Drive;
use crate::support::harness::{Array, built};

/// Named, because without a machine id every command is another host.
const HOST: &str = "nqn.2026-11.io.csdstore:host";
const OTHER: &str = "nqn.2026-11.io.csdstore:other";

#[test]
fn a_program_is_loaded_run_and_forgotten() {
    let array = Array::up(1, "256M");
    let csd = |words: &[&str]| array.csd(&[words, &["--host-nqn", HOST]].concat());
    let grep = built("rust-grep");
    let loaded = csd(&["program", "load", &grep, "--activate", "--json"]).expect(0, &[]);
    let digest = loaded.json()["result"]["digest"].as_str().unwrap().to_owned();
    assert_eq!(digest.len(), 64);
    let listed = csd(&["program", "list", "--json"]).expect(0, &[]).json();
    let drive = &listed["result"]["drives"][0];
    assert_eq!(drive["types"], serde_json::json!(["wasm"]));
    let all = drive["programs"].as_array().unwrap();
    let ours = all.iter().find(|program| program["own"] == false).unwrap();
    assert_eq!((&ours["index"], &ours["active"]), (&16.into(), &true.into()));
    assert!(all.iter().any(|program| program["type"] == "count"));

    let text = "one\ntwo needles\nthree\nneedle\n";
    let input = array.file("text", text.as_bytes());
    let run = ["program", "run", "16", "--input", input, "--output", "hits"];
    let run = [&run[..], &["--parameter", "text:needle", "--json"]].concat();
    let ran = csd(&run).expect(0, &[]).json();
    assert_eq!(
        (&ran["result"]["result"], &ran["result"]["written_bytes"]),
        (&"2".into(), &19.into())
    );
    assert_eq!(std::fs::read(array.path("hits")).unwrap(), b"two needles\nneedle\n");
    let again = ["program", "run", "16", "--input", input, "--output", "hits"];
    csd(&[&again[..], &["--parameter", "text:x"]].concat()).expect(1, &["hits exists", "--force"]);
    csd(&[&again[..], &["--parameter", "text:three", "--force"]].concat()).expect(0, &[]);
    assert_eq!(std::fs::read(array.path("hits")).unwrap(), b"three\n");
    // Standard input and output, and nothing else there.
    let pipe = ["program", "run", "16", "--input", "-", "--output", "-"];
    let pipe = [&pipe[..], &["--parameter", "text:three", "--host-nqn", HOST]].concat();
    let piped = array.csd_with(&pipe, Some(&array.path("text"))).expect(0, &[]);
    assert_eq!(piped.text(), "three\n");

    // Another host of this machine sees none of this.
    let other = |words: &[&str]| array.csd(&[words, &["--host-nqn", OTHER]].concat());
    other(&["program", "run", "16", "--input", input]).expect(1, &["no program"]);
    other(&["program", "deactivate", "16"]).expect(1, &["no program"]);
    let seen = other(&["program", "list", "--json"]).expect(0, &[]).json();
    let seen = seen["result"]["drives"][0]["programs"].as_array().unwrap().clone();
    assert!(!seen.is_empty() && seen.iter().all(|program| program["own"] == true));

    let missing = ["program", "run", "16", "--input", input];
    csd(&missing).expect(1, &["program failed"]);
    csd(&["program", "run", "17", "--input", input]).expect(1, &["no program"]);
    csd(&["program", "unload", "16"]).expect(1, &["program in use"]);
    csd(&["program", "deactivate", "16"]).expect(0, &[]);
    csd(&["program", "unload", "16"]).expect(0, &[]);
    csd(&["program", "activate", "16"]).expect(1, &["no program"]);
    let text = array.file("not.wasm", b"\0asm no program at all");
    csd(&["program", "load", text]).expect(1, &["invalid program data"]);
    csd(&["program", "load", text, "--type", "elf"]).expect(2, &["takes no programs"]);
    csd(&["program", "load", "nowhere"]).expect(1, &["nowhere"]);
    csd(&["program", "load", &grep, "--index", "3"]).expect(1, &["not downloadable"]);
    csd(&["program", "run", "16", "--input", input, "--parameter", "5"]).expect(2, &["colon"]);
}

#[test]
fn a_drive_with_an_allow_list_takes_what_stands_there() {
    let name = "rust-histogram";
    let digest = {
        let bytes = std::fs::read(built(name)).unwrap();
        let digest = csd_drive::compute::digest(&bytes);
        digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let mut drive = Drive::serve("memory", &["--allow-program", &digest, "--memory", "1M"]);
    let url = drive.url();
    let csd = |arguments: &[&str]| {
        let more = ["--drive", url.trim(), "--host-nqn", HOST];
        drive.array.csd(&[arguments, &more].concat())
    };
    csd(&["program", "load", &built("rust-grep")]).expect(1, &["operation denied"]);
    csd(&["program", "load", &built(name), "--activate"]).expect(0, &[]);
    let bytes = drive.array.file("bytes", &[7; 1000]);
    let run = ["program", "run", "16", "--input", bytes, "--output", "table", "--room", "4K"];
    let run = csd(&[&run[..], &["--json"]].concat());
    assert_eq!(run.expect(0, &[]).json()["result"]["result"], "1000");
    let table = std::fs::read(drive.array.path("table")).unwrap();
    assert_eq!((table.len(), &table[56..64]), (2048, &1000u64.to_le_bytes()[..]));
    // Too long for its memory of 1 MiB.
    let long = drive.array.file("long", &vec![1; 2 << 20]);
    csd(&["program", "run", "16", "--input", long]).expect(1, &["beyond the memory"]);
    let said = drive.stop();
    said.expect(0, &["program refused", "operation denied", "program loaded", &digest]);
}

#[test]
fn beyond_loopback_nobody_loads_programs_without_being_named() {
    let array = Array::without_drives();
    let serve = ["drive", "serve", "--media", "memory", "--size", "128M", "--ready-file", "ready"];
    let options = ["--listen", "0.0.0.0:0", "--allow-any-host"];
    let mut running = array.spawn(&[&serve[..], &options].concat(), std::process::Stdio::null());
    let url = running.serves(&array.path("ready"));
    let drive = Drive { array, running: Some(running) };
    let url = url.trim().replace("0.0.0.0", "127.0.0.1");
    let load = ["program", "load", &built("rust-grep"), "--drive", &url];
    drive.array.csd(&load).expect(1, &["operation denied"]);
}
