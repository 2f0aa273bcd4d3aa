//! `csd grep` and `csd wc`: the same bytes and exit codes as the machine's own `grep -a` and `wc`
//! in the C locale, wherever chunks end, in drives and on the host, with and without all drives.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::support::data::numbers;
use crate::support::harness::{Array, Done, binary};
use crate::support::json_page::documented;

fn csd(array: &Array, line: &[&str]) -> Done {
    array.csd(line)
}

/// Runs a program of this machine in the array's folder, in the C locale.
fn system(array: &Array, program: &str, words: &[&str]) -> (i32, Vec<u8>) {
    let mut command = Command::new(program);
    command.current_dir(array.folder.path()).env("LC_ALL", "C").args(words);
    let output = command.stdin(Stdio::null()).output().unwrap();
    (output.status.code().unwrap(), output.stdout)
}

/// Returns lines of lengths up to `longest` of few letters, with a needle here and there.
fn lines(seed: u64, count: usize, longest: u64, end: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for draw in numbers(seed, count) {
        let letters = numbers(draw, usize::try_from(draw % longest).unwrap());
        text.extend(letters.map(|letter| b"abcde fgh"[usize::try_from(letter % 9).unwrap()]));
        if draw.is_multiple_of(7) {
            text.extend_from_slice(b" Needle");
        }
        text.extend_from_slice(end);
    }
    text
}

/// Texts whose lines end at various places of chunks of 4 KiB.
fn texts(seed: u64) -> Vec<(&'static str, Vec<u8>)> {
    let exact = |end: &str| format!("{}{end}", "x".repeat(4095 - 7) + " Needle").into_bytes();
    let noise: Vec<u8> = numbers(seed, 40_000).map(|draw| draw.to_le_bytes()[0]).collect();
    let unfinished = [lines(seed, 700, 60, b"\n"), b"the last needle".to_vec()].concat();
    let long = lines(seed + 1, 12, 20_000, b"\n");
    vec![
        ("empty", Vec::new()),
        ("one", b"Needle".to_vec()),
        ("newlines", vec![b'\n'; 9000]),
        ("short", lines(seed, 2000, 60, b"\n")),
        ("unfinished", unfinished),
        ("long", [long, vec![b'a'; 30_000], b" Needle\n\n".to_vec()].concat()),
        ("crlf", lines(seed, 300, 50, b"\r\n")),
        ("nul", lines(seed, 300, 50, b"\0\n\xFF\xC3\n")),
        ("noise", noise),
        ("exact", [exact("\n"), exact("\n"), exact("\n"), exact("")].concat()),
    ]
}

/// Puts the texts, under the names of the files.
fn put(array: &Array, seed: u64, options: &[&str]) -> Vec<&'static str> {
    let texts = texts(seed);
    for (name, text) in &texts {
        array.file(name, text);
        csd(array, &[&["put", name, "--chunk", "4K"], options].concat()).expect(0, &[]);
    }
    texts.into_iter().map(|(name, _)| name).collect()
}

/// Patterns that mean the same to grep -E and to csd.
const PATTERNS: [&str; 8] = ["Needle", "b+c", "^$", "[^a-e]$", "a.c", "e (f|g)h?$", "", "nowhere"];
const OPTIONS: [&[&str]; 9] =
    [&[], &["-n"], &["-c"], &["-v"], &["-vn"], &["-i"], &["-l"], &["-lv"], &["-ci"]];

fn compare(array: &Array, names: &[&str], options: &[&str], pattern: &str, on: &str) {
    let own = [&["grep", "--on", on, "--cores", "2"], options, &[pattern], names].concat();
    let found = csd(array, &own);
    let others = [&["-a", "-E"], options, &["--", pattern], names].concat();
    let (code, expected) = system(array, "grep", &others);
    assert!(found.stderr.is_empty(), "{own:?}: {}", found.stderr);
    assert_eq!(found.code, code, "{own:?}");
    if found.stdout != expected {
        let at = found.stdout.iter().zip(&expected).take_while(|(a, b)| a == b).count();
        let (own_len, len) = (found.stdout.len(), expected.len());
        panic!("{own:?}: byte {at} differs, {own_len} bytes and {len}");
    }
}

/// Compares all patterns with all options, each in one of the ways to run.
fn compare_all(array: &Array, names: &[&str], ways: &[&str]) {
    let mut ways = ways.iter().cycle();
    for (at, pattern) in PATTERNS.into_iter().enumerate() {
        for (other, options) in OPTIONS.into_iter().enumerate() {
            // Each pattern with a third of the options; all pairs are in the tests together.
            if (at + other + names.len()).is_multiple_of(3) {
                compare(array, names, options, pattern, ways.next().unwrap());
            }
        }
    }
}

#[test]
fn lines_are_those_of_grep_on_any_number_of_drives() {
    for (drives, on) in [(1, "kv"), (2, "block"), (3, "kv")] {
        let array = Array::up(drives, "1G");
        let names = put(&array, 40 + drives as u64, &["--on", on]);
        // Another number of names takes the next third of the options.
        compare_all(&array, &names[..names.len() + 1 - drives], &["drives", "host", "split"]);
        compare(&array, &["short"], &["-n"], "Needle", "drives");
        compare(&array, &["unfinished"], &["-c"], "needle$", "drives");
        compare(&array, &["empty"], &["-v"], "x", "drives");
    }
}

#[test]
fn lines_are_those_of_grep_with_drives_lost() {
    let array = Array::up(4, "256M");
    let names = put(&array, 7, &["--protect", "rs:2+1"]);
    compare_all(&array, &names, &["drives"]);
    array.kill(1);
    let own = [&["grep", "-n", "Needle"], &names[..]].concat();
    let (code, expected) = system(&array, "grep", &[&["-a"], &own[1..]].concat());
    let found = csd(&array, &own).expect(code, &["d1"]);
    assert!(found.stdout == expected);
    // Without protection a drive that is down is a failure, and "not found" would be wrong.
    let array = Array::up(2, "256M");
    array.file("plain", &lines(1, 900, 60, b"\n"));
    csd(&array, &["put", "plain", "--chunk", "4K"]).expect(0, &[]);
    array.kill(1);
    csd(&array, &["grep", "nowhere", "plain"]).expect(2, &["d1"]);
}

#[test]
fn exit_codes_are_those_of_grep_and_failures_name_the_object() {
    let array = Array::up(2, "256M");
    array.file("a", b"one\ntwo\n");
    array.file("x", &[0; 64]);
    csd(&array, &["put", "a"]).expect(0, &[]);
    csd(&array, &["put", "a", "b"]).expect(0, &[]);
    csd(&array, &["put", "x", "--type", "i32"]).expect(0, &[]);
    let said = |line: &[&str], code: i32, words: &[&str]| {
        let done = csd(&array, line).expect(code, words);
        done.text()
    };
    assert_eq!(said(&["grep", "three", "a"], 1, &[]), "");
    assert_eq!(said(&["grep", "two", "a", "missing", "b"], 2, &["missing"]), "a:two\nb:two\n");
    assert_eq!(said(&["grep", "two", "missing"], 2, &["missing"]), "");
    assert_eq!(said(&["grep", "two", "x"], 2, &["type i32", "--type bytes"]), "");
    assert_eq!(said(&["grep", "(", "a"], 2, &["pattern \"(\"", "unclosed group"]), "");
    assert_eq!(said(&["grep", "-F", "(", "a"], 1, &[]), "");
    assert_eq!(said(&["grep", "a\nb", "a"], 2, &["contains a newline"]), "");
    assert_eq!(said(&["grep", "-q", "two", "a"], 0, &[]), "");
    assert_eq!(said(&["grep", "-q", "three", "a"], 1, &[]), "");
    let coloured = said(&["grep", "-n", "--color", "always", "t?wo|o", "a", "b"], 0, &[]);
    let first = "\u{1b}[35ma\u{1b}[0m:\u{1b}[32m1\u{1b}[0m:\u{1b}[1;31mo\u{1b}[0mne\n";
    assert!(coloured.starts_with(first), "{coloured:?}");
    let result = documented(&array, "grep", &["o", "a", "b"], 0);
    assert_eq!((&result["found"], &result["objects"][1]["lines"]), (&true.into(), &2.into()));
    documented(&array, "grep", &["three", "a"], 1);
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_search() {
    let array = Array::up(2, "512M");
    array.file("big", &lines(3, 200_000, 60, b"\n"));
    csd(&array, &["put", "big", "--chunk", "64K"]).expect(0, &[]);
    let mut command = Command::new(binary());
    command.current_dir(array.folder.path()).args(["grep", "", "big"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let mut first = [0; 100];
    running.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    drop(running.stdout.take());
    let ended = running.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr)), (Some(0), "".into()));
    // Two at once share the drives' memory, one after the other.
    let words = ["grep", "-c", "Needle", "big"];
    let spawned = [0; 2].map(|_| array.spawn(&words, Stdio::null()));
    let expected = system(&array, "grep", &["-c", "Needle", "big"]).1;
    for one in spawned {
        assert!(crate::support::harness::finish(one).expect(0, &[]).stdout == expected);
    }
}

#[test]
fn counts_are_those_of_wc() {
    let array = Array::up(3, "256M");
    let texts = [
        ("empty", Vec::new()),
        ("one", b"word".to_vec()),
        ("spaces", b" \t\n\x0B\x0C\r ".to_vec()),
        ("short", lines(5, 2000, 60, b"\n")),
        ("crlf", lines(6, 900, 50, b"\r\n")),
        ("long", lines(7, 12, 20_000, b"\n")),
    ];
    for (at, (name, text)) in texts.iter().enumerate() {
        array.file(name, text);
        let on = if at % 2 == 0 { "kv" } else { "block" };
        csd(&array, &["put", name, "--chunk", "4K", "--on", on]).expect(0, &[]);
    }
    let names = texts.map(|(name, _)| name);
    for options in [&[][..], &["-l"], &["-w"], &["-c"], &["-lc"]] {
        for on in ["drives", "host", "split"] {
            for names in [&names[..], &["short"]] {
                let own = [&["wc", "--on", on], options, names].concat();
                let found = csd(&array, &own).expect(0, &[]);
                let expected = system(&array, "wc", &[options, names].concat()).1;
                assert_eq!(found.text(), String::from_utf8(expected).unwrap(), "{own:?}");
            }
        }
    }
    documented(&array, "wc", &["short"], 0);
    csd(&array, &["wc", "missing"]).expect(2, &["missing"]);
    let some = csd(&array, &["wc", "-l", "short", "missing", "one"]).expect(2, &["missing"]);
    assert_eq!(some.text().lines().count(), 3, "{}", some.text());
}
