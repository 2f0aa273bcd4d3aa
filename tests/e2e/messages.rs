//! Error messages of commands and their exit codes: walks through the guide's table line by line.

use std::fs;

use crate::support::data::small_i32;
use crate::support::drive::Drive;
use crate::support::harness::{Array, Done, finish, root, signal};

const NO_DRIVE: &str = "no drive is up; `csd array up` starts them";

#[test]
fn commands_without_an_array_that_is_up_say_how_to_start_it() {
    for drives in [1, 3] {
        let array = Array::up(drives, "128M");
        array.file("x.bin", &[7; 4096]);
        array.csd(&["put", "x.bin", "x"]).expect(0, &[]);
        array.csd(&["array", "down"]).expect(0, &[]);
        for command in [
            "put x.bin y",
            "put x.bin y --align x",
            "put x.bin y --on block",
            "characterize --array csd-array.toml --size 64K --cores 1",
            "get x back",
            "ls",
            "rm x",
            "run count x --equal 1",
        ] {
            let words: Vec<_> = command.split(' ').collect();
            let said = array.csd(&words).expect(1, &[NO_DRIVE]).stderr;
            assert!(!said.contains("nqn."), "{said}");
        }
    }
}

#[test]
fn up_and_add_name_drives_shortly() {
    let array = Array::up(1, "128M");
    let add = ["array", "add", "--drives", "1", "--size", "128M"];
    for command in [&["array", "up"][..], &add] {
        let text = array.csd(command).expect(0, &[]).text();
        assert!(text.contains("  127.0.0.1:") && !text.contains("nqn."), "{text}");
    }
    let text = array.csd(&["array", "up", "-v"]).expect(0, &[]).text();
    assert_eq!(text.matches("nvme+tcp://127.0.0.1:").count(), 2, "{text}");
}

#[test]
fn a_minority_says_what_starts_the_others_and_names_them_shortly() {
    let array = Array::up_on_files(3, "128M");
    array.kill(0);
    array.kill(2);
    let words = ["1 of 3 drives are up, 2 are needed", "`csd array up`", "drive d0 (127.0.0.1:"];
    let said = array.csd(&["ls"]).expect(1, &words).stderr;
    assert!(!said.contains("nqn."), "{said}");
    let whole = ["drive d0 (nvme+tcp://127.0.0.1:", "drive d2 (nvme+tcp://127.0.0.1:"];
    array.csd(&["ls", "-v"]).expect(1, &whole);
    let failed = array.csd(&["ls", "--json"]).expect(1, &[]).json();
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(whole.iter().all(|words| message.contains(words)), "{message}");
    let table = array.csd(&["array", "status"]).expect(4, &[]).text();
    assert!(table.contains("127.0.0.1:") && !table.contains("nqn."), "{table}");
    let table = array.csd(&["array", "status", "--verbose"]).expect(4, &[]).text();
    assert_eq!(table.matches("nvme+tcp://127.0.0.1:").count(), 3, "{table}");
}

#[test]
fn an_error_for_programs_has_its_command_exit_code_and_drive() {
    let array = Array::up_on_files(3, "128M");
    let (bytes, _) = small_i32(41, 2_000_000);
    array.file("x.bin", &bytes);
    array.csd(&["put", "x.bin", "x", "--type", "i32"]).expect(0, &[]);
    array.kill(2);
    let error = |done: Done| {
        let said = done.json();
        assert_eq!(said["error"]["exit_code"], done.code, "{said}");
        (said["command"].clone(), said["error"].clone())
    };
    let (command, failed) = error(array.csd(&["get", "x", "back", "--json"]));
    assert_eq!((command, failed["drive"].clone()), ("get".into(), "d2".into()));
    let (command, failed) = error(array.csd(&["--json", "run", "count", "x"]));
    assert_eq!((command, failed["class"].clone()), ("run count".into(), "usage".into()));
    assert!(failed.get("drive").is_none(), "{failed}");
    let (command, _) = error(array.csd(&["drive", "serve", "--json"]));
    assert_eq!(command, "drive serve");
}

/// Returns the rows of the guide's table: a command, the state of the array, the exit code.
fn rows() -> Vec<(String, String, i32)> {
    let guide = fs::read_to_string(root("docs/guide/command-line.md")).unwrap();
    let rows = guide.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("| `csd ")?.split('|').map(str::trim).collect();
        let command = cells[0].trim_end_matches('`').to_owned();
        Some((command, cells[1].to_owned(), cells[2].parse().expect("an exit code")))
    });
    rows.collect()
}

#[test]
fn exit_codes_are_those_of_the_guide() {
    let array = Array::up_on_files(3, "128M");
    let (bytes, _) = small_i32(42, 500_000);
    array.file("x.bin", &bytes);
    array.file("links", b"0 1\n1 2\n2 0\n3 0\n");
    array.csd(&["put", "x.bin", "x", "--type", "i32"]).expect(0, &[]);
    array.csd(&["put", "links", "g", "--graph"]).expect(0, &[]);
    let (rows, mut state) = (rows(), "all drives are up".to_owned());
    assert!(rows.len() > 20, "the guide's table is read: {rows:?}");
    for (command, when, code) in rows {
        if state != when {
            match when.as_str() {
                "one of three is down" => array.kill(2),
                "the array is down" => drop(array.csd(&["array", "down"]).expect(0, &[])),
                _ => panic!("no such state: {when}"),
            }
            state = when;
        }
        let words: Vec<&str> = command.split(' ').collect();
        let done = array.csd(&words);
        assert_eq!(done.code, code, "csd {command} ({state}): {}", done.stderr);
        if (1..=3).contains(&code) {
            let said = array.csd(&[&words[..], &["--json"]].concat()).json();
            assert_eq!(said["error"]["exit_code"], code, "csd {command}: {said}");
            assert_eq!(said["error"]["class"], ["run", "usage", "differ"][code as usize - 1]);
        }
    }
}

#[test]
fn addresses_to_listen_on_may_be_names_and_the_option_at_fault_is_named() {
    let mut drive = Drive::serve("memory", &["--metrics", "localhost:0"]);
    let taken = drive.address().to_string();
    let folder = Array::without_drives();
    let serve = ["drive", "serve", "--media", "memory", "--size", "128M", "--listen"];
    let refused = |more: &[&str]| folder.csd(&[&serve[..], more].concat());
    let said = refused(&["127.0.0.1:0", "--metrics", &taken]).expect(1, &["--metrics"]).stderr;
    assert!(!said.contains("--listen"), "{said}");
    refused(&[&taken]).expect(1, &["another address with --listen"]);
    refused(&["nowhere"]).expect(2, &["say HOST:PORT"]);
    let (_, port) = taken.rsplit_once(':').unwrap();
    drive.stop().expect(0, &[]);
    // The name is of this machine, whichever of its addresses comes first.
    let name = format!("localhost:{port}");
    let named = [&serve[..], &[&name, "--ready-file", "ready"]].concat();
    let mut running = folder.spawn(&named, std::process::Stdio::null());
    running.serves(&folder.path("ready"));
    signal(running.child.id(), rustix::process::Signal::TERM);
    finish(running).expect(0, &[]);
}

#[test]
fn what_is_no_program_is_refused_before_it_is_sent() {
    let array = Array::up(1, "128M");
    array.file("access.log", b"GET / HTTP/1.1\n");
    let load = ["program", "load", "access.log"];
    array.csd(&load).expect(2, &["access.log is no WebAssembly module"]);
}

#[test]
fn the_version_says_what_was_built() {
    let folder = Array::without_drives();
    let said = folder.csd(&["--version"]).expect(0, &[]).text();
    assert!(said.starts_with(concat!("csd ", env!("CARGO_PKG_VERSION"), " (")), "{said}");
    let features = if cfg!(feature = "wasm") { "features: wasm)" } else { "features: none)" };
    assert!(said.trim_end().ends_with(features), "{said}");
}

/// Help of a command omits options without meaning for it, and lists global options under their own
/// heading.
#[test]
fn help_has_global_options_apart_and_only_those_that_mean_something() {
    let folder = Array::without_drives();
    let help = |command: &str| {
        let words: Vec<_> = command.split(' ').chain(["--help"]).collect();
        folder.csd(&words).expect(0, &[]).text()
    };
    for (command, with, without) in [
        ("ls", &["--array", "--secrets", "--host-nqn", "--json"][..], &[][..]),
        ("drive serve", &["--secrets", "--json"], &["--array", "--host-nqn"]),
        ("drive check", &["--json", "--quiet"], &["--array", "--secrets", "--host-nqn"]),
        ("secret new", &["--json"], &["--array", "--secrets", "--host-nqn"]),
    ] {
        let text = help(command);
        let (own, global) = text.split_once("Global options:").expect("a heading");
        // The text of an option may name another one: only lines that declare one count.
        let declares = |text: &str, option: &str| {
            text.lines().any(|line| {
                let line = line.trim_start();
                // `-q, --quiet`, or the long form alone.
                let short = line.starts_with('-') && !line.starts_with("--");
                let line = line.split_once(", ").filter(|_| short).map_or(line, |(_, long)| long);
                line.split([' ', '=']).next() == Some(option)
            })
        };
        for option in with {
            assert!(
                declares(global, option) && !declares(own, option),
                "{command} {option}: {text}"
            );
        }
        for option in without {
            assert!(!declares(&text, option), "{command} {option}: {text}");
        }
    }
    let serial = help("run count");
    assert!(!serial.contains("It does"), "{serial}");
}
