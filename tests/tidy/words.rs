//! Words: marks of unfinished work, `unsafe`, and the names of the operating system.

use crate::tree::{Tree, code_of};

/// Marks of unfinished work, which belong in an issue. In two halves, so that this file has none.
const UNDONE: [(&str, &str); 6] =
    [("TO", "DO"), ("FIX", "ME"), ("XX", "X"), ("to", "do!"), ("unimple", "mented!"), ("db", "g!")];

/// Places that may contain `unsafe`.
const UNSAFE: [&str; 9] = [
    "crates/buffer/",
    // Follows the pointers of C callers, and calls their callbacks.
    "clients/c/",
    "crates/reactor/",
    "crates/kernels/src/arch/",
    // Calls a library of others, and stores past the cache.
    "bench/src/isal.rs",
    "bench/src/bin/bench-kernels/triad.rs",
    "bench/rocksdb/src/library.rs",
    "bench/rocksdb/src/store.rs",
    "sdk/rust/",
];

/// Names that only the reactor uses: other code asks the reactor, and so runs in a simulation
/// unchanged.
const SYSTEM: [&str; 9] = [
    "io_uring",
    "epoll",
    "libc",
    "getrandom",
    "rand",
    "std::thread",
    "std::time::Instant",
    "SystemTime",
    "std::process",
];

/// Places that may use some of these names, with the reason.
const MAY_NAME: [(&str, &[&str]); 19] = [
    // A buffer may be dropped on another thread than it came from.
    ("crates/buffer/tests/", &["std::thread"]),
    // Errors are errno numbers; the process number tells a fork from its parent.
    ("clients/c/src/", &["libc", "std::process"]),
    // Waits for other threads when the interpreter ends.
    ("clients/python/src/", &["std::thread"]),
    // Its tests have drives and callers on threads of their own.
    ("crates/client/tests/", &["std::thread"]),
    // Whether a panic is under way decides whether a destructor may panic.
    ("crates/nvme/src/controller/queue.rs", &["std::thread"]),
    // The binary starts drives as processes and ends with an exit code.
    ("crates/csd/src/", &["std::process"]),
    // Runs runc and other programs of the machine.
    ("crates/os/", &["std::process"]),
    // A destructor that finds a panic under way makes no second one.
    ("crates/os/tests/", &["std::thread"]),
    // The file systems' interface has times of files: constants, or the dates of objects.
    ("crates/csd/src/attach/file.rs", &["SystemTime"]),
    ("crates/csd/src/mount/tree.rs", &["SystemTime"]),
    ("crates/csd/src/mounted.rs", &["SystemTime"]),
    // Waits for a command of the user while it reads counters, and tells its wall time.
    ("crates/csd/src/meter/", &["std::thread", "std::time::Instant"]),
    // Asks git for the commit, where there is one.
    ("crates/csd/build.rs", &["std::process"]),
    // Wall time on the host is what a run reports and a record carries.
    ("crates/csd/src/clock.rs", &["std::time::Instant", "SystemTime"]),
    // Measures wall time without a reactor in between, starts its servers as processes, and the
    // units of verify as threads.
    ("bench/", &["std::thread", "std::time::Instant", "std::process"]),
    // Examples say how long they take, and measure modules in processes of their own.
    ("crates/kernels/examples/", &["std::time::Instant"]),
    ("crates/wasm/examples/", &["std::process"]),
    // Tests drive processes and stock clients from outside.
    ("tests/", &["std::thread", "std::time::Instant", "SystemTime", "std::process"]),
    ("crates/wasm/tests/", &["std::process"]),
];

/// Checks that the paths with exceptions exist.
pub(crate) fn leave_of_missing_paths(tree: &Tree) -> Vec<String> {
    let paths = MAY_NAME.iter().map(|(path, _)| *path).chain(UNSAFE);
    let missing = paths.filter(|path| !tree.has(path));
    missing.map(|path| format!("{path}: is not there, and has leave to name something")).collect()
}

/// Checks that no work is marked as unfinished.
pub(crate) fn undone(tree: &Tree) -> Vec<String> {
    let marks: Vec<String> = UNDONE.iter().map(|(a, b)| format!("{a}{b}")).collect();
    let mut violations = Vec::new();
    for ending in [".rs", ".py", ".sh", ".toml"] {
        for (path, text) in tree.ending(ending) {
            for (index, line) in text.lines().enumerate() {
                let found = marks.iter().filter(|mark| has_word(line, mark));
                let number = index + 1;
                violations.extend(found.map(|mark| format!("{path}:{number}: {mark}")));
            }
        }
    }
    violations
}

/// Checks that `unsafe` is only in its places.
pub(crate) fn unsafe_code(tree: &Tree) -> Vec<String> {
    let outside =
        tree.ending(".rs").filter(|(path, _)| !UNSAFE.iter().any(|p| path.starts_with(p)));
    outside
        .filter(|(_, text)| has_word(&code_of(text), "unsafe"))
        .map(|(path, _)| format!("{path}: unsafe"))
        .collect()
}

/// Checks that only the reactor names the operating system, except for [`MAY_NAME`].
pub(crate) fn operating_system(tree: &Tree) -> Vec<String> {
    let mut violations = Vec::new();
    for (path, text) in tree.ending(".rs") {
        if path.starts_with("crates/reactor/") {
            continue;
        }
        let code = code_of(text);
        let named = SYSTEM.iter().filter(|name| names(&code, name));
        let may = |name: &str| {
            MAY_NAME.iter().any(|(prefix, may)| path.starts_with(prefix) && may.contains(&name))
        };
        let wrong = named.filter(|name| !may(name));
        violations.extend(wrong.map(|name| format!("{path}: names {name}")));
    }
    violations
}

/// Returns true if code names an item: by its path, or in a group such as `std::time::{Duration,
/// Instant}`.
pub(crate) fn names(code: &str, item: &str) -> bool {
    if has_word(code, item) {
        return true;
    }
    let Some((module, name)) = item.rsplit_once("::") else { return false };
    let group = format!("{module}::{{");
    code.match_indices(&group).any(|(at, _)| {
        let inside = &code[at + group.len()..];
        let end = inside.find('}').unwrap_or(inside.len());
        has_word(&inside[..end], name)
    })
}

/// Returns true if `text` has `word` with no letter, digit or underscore on either side.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_none_or(|c| !part(c));
        let after = text[at + word.len()..].chars().next().is_none_or(|c| !part(c));
        before && (after || word.ends_with('!'))
    })
}

#[test]
fn marks_of_unfinished_work_are_found_as_words() {
    let (a, b) = UNDONE[0];
    let text = format!("fine\n// {a}{b}: later\nlet method{a}{b} = 1;\n");
    let (c, d) = UNDONE[3];
    let call = format!("{c}{d}()");
    let tree = Tree::made_up(&[("a.rs", &text), ("b.py", &call), ("c.md", &text)]);
    assert_eq!(undone(&tree), [format!("a.rs:2: {a}{b}"), format!("b.py:1: {c}{d}")]);
}

#[test]
fn unsafe_is_found_outside_of_its_places_and_only_in_code() {
    let tree = Tree::made_up(&[
        ("crates/reactor/src/a.rs", "unsafe { x() }"),
        ("crates/kernels/src/arch/a.rs", "unsafe { x() }"),
        ("crates/kernels/src/a.rs", "#![allow(unsafe_code)] // unsafe"),
        ("crates/drive/src/a.rs", "let x = unsafe { y() };"),
    ]);
    assert_eq!(unsafe_code(&tree), ["crates/drive/src/a.rs: unsafe"]);
}

#[test]
fn names_of_the_operating_system_are_found_in_paths_and_groups() {
    let tree = Tree::made_up(&[
        ("crates/drive/src/a.rs", "use std::time::{Duration, Instant};"),
        ("crates/drive/src/b.rs", "use std::{thread, fmt}; let x = \"epoll\"; // rand"),
        ("crates/drive/src/c.rs", "std::thread::spawn(f); use std::time::Duration;"),
        ("crates/drive/src/d.rs", "use csd_reactor::Instant; let operand = rand::random();"),
        ("crates/csd/src/e.rs", "use std::process::Command;"),
        ("crates/store/src/f.rs", "use std::process::Command;"),
        ("crates/reactor/src/g.rs", "use std::thread;"),
    ]);
    let expected = [
        "crates/drive/src/a.rs: names std::time::Instant",
        "crates/drive/src/b.rs: names std::thread",
        "crates/drive/src/c.rs: names std::thread",
        "crates/drive/src/d.rs: names rand",
        "crates/store/src/f.rs: names std::process",
    ];
    assert_eq!(operating_system(&tree), expected);
}
