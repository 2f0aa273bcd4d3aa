//! Faulty and hostile programs: each is refused or ended with a reason, and the drive stays sound.

use csd_drive::compute::EXECUTIONS_MAX;
use csd_tests::wire::Command;

use crate::host::{Host, INDEX};

/// Beginning of every module here: imports, and 64 KiB of memory.
const HEAD: &str = r#"(module
    (import "csd" "next" (func $next (param i32 i32 i32) (result i32)))
    (import "csd" "emit" (func $emit (param i32 i32)))
    (import "csd" "parameters" (func $parameters (param i32 i32) (result i32)))
    (import "csd" "fail" (func $fail (param i32 i32)))
    (memory (export "memory") 1)"#;

fn module(body: &str) -> Vec<u8> {
    wat::parse_str(format!("{HEAD} {body})")).unwrap()
}

fn entry(body: &str) -> Vec<u8> {
    module(&format!(r#"(func (export "csd_run") (result i64) {body})"#))
}

/// Runs a program that is expected to fail; returns the drive's reason.
fn run(host: &mut Host, program: &[u8]) -> String {
    assert_eq!(host.load(INDEX, program), 0, "{}", host.said());
    assert_eq!(host.activate(INDEX, true), 0);
    host.said();
    let reply = host.execute(INDEX, [(0, 4096), (8192, 4096)], b"parameters");
    assert_eq!((reply.status, reply.result), (0x7C0, 0), "{}", host.said());
    let said = host.said();
    assert_eq!(host.activate(INDEX, false), 0);
    assert_eq!(host.unload(INDEX), 0);
    healthy(host);
    said
}

/// Asserts that a good program runs, and that blocks are written and read.
fn healthy(host: &mut Host) {
    let good = entry("(i64.extend_i32_u (call $next (i32.const 0) (i32.const 0) (i32.const 9)))");
    assert_eq!(host.load(INDEX + 1, &good), 0);
    assert_eq!(host.activate(INDEX + 1, true), 0);
    let reply = host.execute(INDEX + 1, [(0, 64), (8192, 64)], &[]);
    assert_eq!((reply.status, reply.result), (0, 9));
    assert_eq!(host.activate(INDEX + 1, false), 0);
    let block = |opcode| Command::new(opcode, 1).dword(10, 5).dword(12, 0);
    assert_eq!(host.io.command(block(0x01), &[0x5A; 4096], 0).status, 0);
    assert_eq!(host.io.command(block(0x02), &[], 4096).data, [0x5A; 4096]);
    assert_eq!(host.said(), "");
}

#[test]
fn what_traps_is_ended() {
    let mut host = Host::new();
    let all = [
        ("unreachable", "unreachable"),
        ("(i64.div_s (i64.const 1) (i64.const 0))", "divide by zero"),
        ("(i64.load (i32.const 0x7FFFFFFF))", "out of bounds"),
        ("(i64.store (i32.const 65533) (i64.const 1)) (i64.const 0)", "out of bounds"),
        ("(i64.trunc_f64_s (f64.const nan))", "integer"),
        (
            "(memory.fill (i32.const 65535) (i32.const 0) (i32.const 2)) (i64.const 0)",
            "out of bounds",
        ),
    ];
    for (body, reason) in all {
        let said = run(&mut host, &entry(body));
        assert!(said.contains("trapped") && said.contains(reason), "{body}: {said}");
    }
    let deep = module(
        r#"(func $deep (export "csd_run") (result i64) (i64.add (i64.const 1) (call $deep)))"#,
    );
    let said = run(&mut host, &deep);
    assert!(said.contains("call stack exhausted"), "{said}");
}

#[test]
fn what_asks_for_places_outside_of_its_memory_is_ended() {
    let mut host = Host::new();
    let all = [
        "(i64.extend_i32_u (call $next (i32.const 0) (i32.const 65535) (i32.const 2)))",
        "(i64.extend_i32_u (call $next (i32.const 0) (i32.const -1) (i32.const -1)))",
        "(call $emit (i32.const 0) (i32.const 65537)) (i64.const 0)",
        "(call $emit (i32.const -4) (i32.const 8)) (i64.const 0)",
        "(i64.extend_i32_u (call $parameters (i32.const 65530) (i32.const 10)))",
        "(call $fail (i32.const 70000) (i32.const 10)) (i64.const 0)",
    ];
    for body in all {
        let said = run(&mut host, &entry(body));
        assert!(said.contains("its memory has 65536 bytes"), "{body}: {said}");
    }
    let said = run(
        &mut host,
        &entry("(i64.extend_i32_u (call $next (i32.const 0) (i32.const 0) (i32.const 0)))"),
    );
    assert!(said.contains("next without room"), "{said}");
}

#[test]
fn what_says_that_it_fails_is_heard_without_its_rubbish() {
    let mut host = Host::new();
    let words = module(
        r#"(data (i32.const 0) "bad\n\1b[31m\ff input")
           (func (export "csd_run") (result i64)
             (call $fail (i32.const 0) (i32.const 16)) (i64.const 0))"#,
    );
    let said = run(&mut host, &words);
    assert!(said.starts_with("execution failed: the program says: bad[31m"), "{said:?}");
    assert!(said.ends_with(" input") && !said.contains(['\n', '\u{1b}']), "{said:?}");
    // Words without an end are cut.
    let said = run(&mut host, &entry("(call $fail (i32.const 0) (i32.const 65536)) (i64.const 0)"));
    assert!(said.len() < 1000, "{said}");
}

#[test]
fn what_never_ends_is_ended_and_others_run_meanwhile() {
    let mut host = Host::new();
    let spin = entry("(loop $again (br $again)) (i64.const 0)");
    assert_eq!(host.load(INDEX, &spin), 0);
    assert_eq!(host.activate(INDEX, true), 0);
    // One ends by its limit, 100 ms in the upper half of the first parameter; one by Abort; one in
    // its start function.
    let payload = host_ranges();
    let execution = |index: u32, time: u32| {
        let command = Command::new(0x01, 5).dword(2, index).dword(3, 1);
        command.dword(4, payload.len() as u32).dword(11, time)
    };
    let reply = host.io.command_in_capsule(execution(INDEX, 100), &payload);
    assert_eq!(reply.status, 0x7C0);
    assert!(host.said().contains("its time was up"));
    let cid = host.io.post(execution(INDEX, 0), &payload);
    healthy_beside(&mut host);
    let abort = Command::new(0x08, 0).dword(10, 1 | u32::from(cid) << 16);
    assert_eq!(host.admin.command(abort, &[], 0).result & 1, 0, "aborted");
    assert_eq!(host.io.response(), (cid, 0x007, 0));
    let begins = module(
        r#"(func $start (loop $again (br $again))) (start $start)
           (func (export "csd_run") (result i64) (i64.const 0))"#,
    );
    assert_eq!(host.load(INDEX + 2, &begins), 0);
    assert_eq!(host.activate(INDEX + 2, true), 0);
    assert_eq!(host.io.command_in_capsule(execution(INDEX + 2, 100), &payload).status, 0x7C0);
    assert_eq!(host.activate(INDEX, false), 0);
    assert_eq!(host.activate(INDEX + 2, false), 0);
    host.said();
    healthy(&mut host);
}

#[test]
fn what_waits_for_its_turn_is_aborted_before_it_comes() {
    let mut host = Host::new();
    assert_eq!(host.load(INDEX, &entry("(loop $again (br $again)) (i64.const 0)")), 0);
    assert_eq!(host.activate(INDEX, true), 0);
    let payload = host_ranges();
    let spin = || {
        let command = Command::new(0x01, 5).dword(2, INDEX).dword(3, 1);
        command.dword(4, payload.len() as u32)
    };
    // One more than run concurrently on a core.
    let cids: Vec<u16> = (0..=EXECUTIONS_MAX).map(|_| host.io.post(spin(), &payload)).collect();
    // A later command is answered, so they have begun.
    healthy_beside(&mut host);
    for cid in cids.into_iter().rev() {
        let abort = Command::new(0x08, 0).dword(10, 1 | u32::from(cid) << 16);
        assert_eq!(host.admin.command(abort, &[], 0).result & 1, 0, "aborted");
        assert_eq!(host.io.response(), (cid, 0x007, 0));
    }
    host.said();
    healthy(&mut host);
}

fn host_ranges() -> Vec<u8> {
    crate::host::descriptor(0, 4096).to_vec()
}

/// Blocks are written and read while a program spins, by another connection of the same core too.
fn healthy_beside(host: &mut Host) {
    let block = |opcode| Command::new(opcode, 1).dword(10, 7).dword(12, 0);
    let cid = host.io.post(block(0x01), &[0x77; 4096]);
    assert_eq!(host.io.response(), (cid, 0, 0));
    let list = host.admin.command(Command::new(0x02, 5).dword(10, 0x3FF << 16 | 0x82), &[], 4096);
    assert_eq!(list.status, 0);
}

#[test]
fn memory_ends_where_the_limit_is() {
    let mut host = Host::new();
    // Grows by a page of 64 KiB until it is refused: 4 MiB are 64 pages.
    let grow = entry(
        "(loop $again (br_if $again (i32.ge_s (memory.grow (i32.const 1)) (i32.const 0))))
         (i64.extend_i32_u (memory.size))",
    );
    assert_eq!(host.load(INDEX, &grow), 0);
    assert_eq!(host.activate(INDEX, true), 0);
    let reply = host.execute(INDEX, [(0, 64), (8192, 64)], &[]);
    assert_eq!((reply.status, reply.result), (0, 64));
    // 1 MiB by the first parameter's bits 31:16.
    let data = host_ranges();
    let less = Command::new(0x01, 5).dword(2, INDEX).dword(3, 1).dword(4, 32).dword(10, 1 << 16);
    let reply = host.io.command_in_capsule(less, &data);
    assert_eq!((reply.status, reply.result), (0, 16));
    assert_eq!(host.activate(INDEX, false), 0);
    let greedy = r#"(module (memory (export "memory") 65)
        (func (export "csd_run") (result i64) (i64.const 0)))"#;
    let said = run(&mut host, &wat::parse_str(greedy).unwrap());
    assert!(said.contains("memory"), "{said}");
}

#[test]
fn tables_end_where_the_limit_of_all_of_them_is() {
    let mut host = Host::new();
    let program = |tables: &str, body: &str| {
        let run = format!(r#"(func (export "csd_run") (result i64) {body})"#);
        wat::parse_str(format!(r#"(module (memory (export "memory") 1) {tables} {run})"#)).unwrap()
    };
    for tables in ["(table 10001 funcref)".to_owned(), "(table 9000 funcref)".repeat(50)] {
        assert_eq!(host.load(INDEX, &program(&tables, "(i64.const 0)")), 0x18E);
        assert!(host.said().contains("elements in its tables, and 10000 are taken"));
    }
    // 6,000 and 1,000: they can have 3,000 more, whichever it is that grows.
    let grow = |table, by| format!("(table.grow {table} (ref.null func) (i32.const {by}))");
    let body = format!(
        "(if (i32.ne {} (i32.const -1)) (then unreachable))
         (if (i32.ne {} (i32.const 1000)) (then unreachable))
         (if (i32.ne {} (i32.const -1)) (then unreachable))
         (i64.const 5)",
        grow(1, 3001),
        grow(1, 3000),
        grow(0, 1),
    );
    let tables = "(table 6000 funcref) (table 1000 funcref)";
    assert_eq!(host.load(INDEX, &program(tables, &body)), 0, "{}", host.said());
    assert_eq!(host.activate(INDEX, true), 0);
    let reply = host.execute(INDEX, [(0, 64), (8192, 64)], &[]);
    assert_eq!((reply.status, reply.result), (0, 5), "{}", host.said());
}

#[test]
fn what_would_take_long_to_compile_is_refused_at_once() {
    use crate::worst::{Module, ifs, of};
    let mut host = Host::new();
    let all = [
        (of(1, 5_000, &ifs(5_000, 8_000)), "function 1: it has", "alive over all of its branches"),
        (
            of(1, 10_000, &ifs(10_000, 20_000)),
            "function 1: it has 339116 bytes",
            "262144 are taken",
        ),
        (of(1, 10_000, &ifs(10_000, 100)), "function 1: it has 10000 locals", "5000 are taken"),
        (of(60_000, 0, &[]), "it has 60001 functions", "10000 are taken"),
        (of(20, 500, &ifs(500, 700)), "alive over all branches", "6000000 are taken"),
        (Module { tables: vec![1; 1001], ..Module::default() }, "1001 tables", "1000 are taken"),
    ];
    for (module, what, most) in all {
        assert_eq!(host.load(INDEX, &module.bytes()), 0x18E, "{what}");
        let said = host.said();
        assert!(said.starts_with("program refused: "), "{said}");
        assert!(said.contains(what) && said.contains(most), "{what}: {said}");
    }
    healthy(&mut host);
}

#[test]
fn output_ends_where_its_range_and_its_limit_are() {
    let mut host = Host::new();
    let flood = entry(
        "(loop $again (call $emit (i32.const 0) (i32.const 65536)) (br $again)) (i64.const 0)",
    );
    let said = run(&mut host, &flood);
    assert!(said.contains("writes more than"), "{said}");
    assert_eq!(host.load(INDEX, &flood), 0);
    assert_eq!(host.activate(INDEX, true), 0);
    host.write((32 << 20) - 8, &[9; 16]);
    let reply = host.execute(INDEX, [(0, 64), (12 << 20, 20 << 20)], &[]);
    assert_eq!(reply.status, 0x7C0, "more than 8 MiB, which the drive allows");
    assert_eq!(host.read((32 << 20) - 8, 16), [9; 16], "and nothing beyond");
    // Without a place for output it is discarded; the time limit bounds it.
    let data = host_ranges();
    let nowhere = Command::new(0x01, 5).dword(2, INDEX).dword(3, 1).dword(4, 32).dword(11, 50);
    assert_eq!(host.io.command_in_capsule(nowhere, &data).status, 0x7C0);
}

#[test]
fn what_is_no_program_is_not_loaded() {
    let mut host = Host::new();
    let text = |wat: &str| wat::parse_str(wat).unwrap();
    let run = r#"(func (export "csd_run") (result i64) (i64.const 0))"#;
    let mut cut = entry("(i64.const 0)");
    cut.truncate(cut.len() - 3);
    let all = [
        (b"#!/bin/sh\nrm -rf /\n".to_vec(), "not WebAssembly"),
        (b"\0asm".to_vec(), ""),
        (b"\0asm\x0d\0\x01\0".to_vec(), ""),
        (cut, ""),
        (text("(module)"), "exports no function csd_run"),
        (text(&format!("(module {run})")), "exports no memory"),
        (
            text(r#"(module (memory (export "memory") 1) (func (export "csd_run")))"#),
            "type () -> i64",
        ),
        (
            text(
                r#"(module (memory (export "memory") 1)
                (global (export "csd_run") i64 (i64.const 0)))"#,
            ),
            "exports no function",
        ),
        (
            text(&format!(
                r#"(module (import "csd" "open" (func)) (memory (export "memory") 1) {run})"#
            )),
            "csd::open",
        ),
        (
            text(&format!(
                r#"(module (import "wasi_snapshot_preview1" "proc_exit" (func (param i32)))
                (memory (export "memory") 1) {run})"#
            )),
            "proc_exit",
        ),
        (
            text(&format!(
                r#"(module (import "csd" "next" (func (param i32) (result i64)))
                (memory (export "memory") 1) {run})"#
            )),
            "next",
        ),
        (text(&format!(r#"(module (memory (export "memory") i64 1) {run})"#)), "memory64"),
        (text(&format!(r#"(module (memory (export "memory") 1) (memory 1) {run})"#)), "memor"),
        (text(&format!(r#"(module (memory (export "memory") 1 1 shared) {run})"#)), "thread"),
    ];
    for (program, reason) in all {
        assert_eq!(host.load(INDEX, &program), 0x18E, "{reason}");
        let said = host.said();
        assert!(said.starts_with("program refused: ") && said.contains(reason), "{reason}: {said}");
        assert_eq!(host.activate(INDEX, true), 0x196);
    }
    healthy(&mut host);
}

#[test]
fn what_answers_rubbish_answers_a_number() {
    let mut host = Host::new();
    let odd = entry("(call $emit (i32.const 0) (i32.const 3)) (i64.const -2)");
    assert_eq!(host.load(INDEX, &odd), 0);
    assert_eq!(host.activate(INDEX, true), 0);
    let reply = host.execute(INDEX, [(0, 64), (8192, 64)], &[]);
    assert_eq!((reply.status, reply.result), (0, u64::MAX - 1));
    // Streams that do not exist are at their end.
    assert_eq!(host.activate(INDEX, false), 0);
    let none = entry("(i64.extend_i32_u (call $next (i32.const 99) (i32.const 0) (i32.const 9)))");
    assert_eq!(host.load(INDEX, &none), 0);
    assert_eq!(host.activate(INDEX, true), 0);
    assert_eq!(host.execute(INDEX, [(0, 64), (8192, 64)], &[]).result, 0);
}
