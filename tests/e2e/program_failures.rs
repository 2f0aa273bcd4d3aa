//! A program that fails says why and where at once, on drives as on the host.

use crate::support::harness::{Array, Done, root};

/// Runs `BODY` over a chunk that begins with an x.
const MODULE: &str = r#"(module
    (import "csd" "next" (func $next (param i32 i32 i32) (result i32)))
    (import "csd" "fail" (func $fail (param i32 i32)))
    (memory (export "memory") 128)
    (data (i32.const 0) "column 3 is not a number")
    (func (export "csd_run") (result i64)
      (drop (call $next (i32.const 0) (i32.const 64) (i32.const 64)))
      (if (i32.eq (i32.load8_u (i32.const 64)) (i32.const 120)) (then BODY))
      (i64.const 0)))"#;
const CHUNK: usize = 4096;

fn run(array: &Array, line: &str) -> Done {
    array.csd(&line.split_whitespace().collect::<Vec<_>>())
}

/// Fails over chunk 5 of 8 in each way that a program can, and over all of them for want of memory.
#[test]
fn a_program_that_fails_in_a_drive_says_why_and_where() {
    let array = Array::up(2, "256M");
    let mut bytes = vec![b'\n'; 8 * CHUNK];
    bytes[5 * CHUNK] = b'x';
    array.file("x", &bytes);
    run(&array, "put x --chunk 4K").expect(0, &[]);
    let module = |name: &str, body: &str| {
        array.file(name, &wat::parse_str(MODULE.replace("BODY", body)).unwrap());
    };
    module("says.wasm", "(call $fail (i32.const 0) (i32.const 24))");
    module("trap.wasm", "unreachable");
    module("loop.wasm", "(loop $l (br $l))");
    let all = [
        ("says.wasm", "chunk 5 of \"x\"", "the program says: column 3 is not a number"),
        ("trap.wasm", "chunk 5 of \"x\"", "the program trapped: "),
        ("loop.wasm --time 100", "chunk 5 of \"x\"", "its time was up"),
        ("says.wasm --memory 4M", "of \"x\"", "memory"),
    ];
    for (line, place, why) in all {
        for on in ["drives", "host", "split"] {
            let line = format!("program run {line} --object x --on {on}");
            let said = run(&array, &line).expect(1, &["the program failed: chunk ", place, why]);
            let in_drive = said.stderr.contains(" on drive d");
            assert!(on == "split" || in_drive == (on == "drives"), "{on}: {}", said.stderr);
        }
    }
    let log = run(&array, "drive log --failed").expect(0, &[]).text();
    assert!(log.contains("column 3") && log.contains("its time was up"), "{log}");
    assert!(!log.contains("says why"), "{log}");
}

/// A program that one drive has loaded.
#[test]
fn a_program_over_files_says_why_it_failed() {
    let array = Array::up(1, "128M");
    array.file("access.log", b"GET / HTTP/1.1\n");
    let grep = root("sdk/built/rust-grep.wasm");
    array.csd(&["program", "load", grep.to_str().unwrap(), "--activate"]).expect(0, &[]);
    let why = "Execute Program failed: the program says: the parameter is what to look for";
    run(&array, "program run 16 --input access.log").expect(1, &[why]);
}
