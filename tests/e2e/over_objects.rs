//! `csd program run` over objects: every way to run gives the result that the test computes itself,
//! wherever chunks end, and reports its errors.

use csd_tests::proxy::Door;
use serde_json::Value;

use crate::support::data::numbers;
use crate::support::harness::{Array, Done, built, finish, wait_until};
use crate::support::proxied::{EXECUTE, ProxiedArray};

/// Beginning of every module here: imports, and 8 MiB of memory.
const HEAD: &str = r#"(module
    (import "csd" "next" (func $next (param i32 i32 i32) (result i32)))
    (import "csd" "emit" (func $emit (param i32 i32)))
    (memory (export "memory") 128)
    (func (export "csd_records") (result i64) (i64.const 1))"#;

/// Program over lines that first emits a mark for each execution, then its stream.
const SEGMENTS: &str = r#"(data (i32.const 0) ">")
    (func (export "csd_run") (result i64) (local $count i32) (local $all i64)
      (call $emit (i32.const 0) (i32.const 1))
      (loop $more
        (local.set $count (call $next (i32.const 0) (i32.const 16) (i32.const 4096)))
        (call $emit (i32.const 16) (local.get $count))
        (local.set $all (i64.add (local.get $all) (i64.extend_i32_u (local.get $count))))
        (br_if $more (local.get $count)))
      (local.get $all))"#;

/// Writes a module into the array's folder.
fn module<'a>(array: &Array, name: &'a str, body: &str) -> &'a str {
    array.file(name, &wat::parse_str(format!("{HEAD} {body})")).unwrap())
}

fn run(array: &Array, line: &str) -> Done {
    array.csd(&line.split_whitespace().collect::<Vec<_>>())
}

/// Returns lines of lengths up to `longest`, some of them empty, some with a needle; no newline at
/// the end.
fn lines(seed: u64, count: usize, longest: u64) -> Vec<u8> {
    let line = |draw: u64| {
        let length = usize::try_from(draw % longest).unwrap();
        let text = format!("{draw:x}").repeat(length / 8 + 1);
        let mut line = text.into_bytes();
        line.truncate(length);
        if draw.is_multiple_of(5) {
            line.extend_from_slice(b" needle ");
        }
        line
    };
    numbers(seed, count).map(line).collect::<Vec<_>>().join(&b'\n')
}

/// Returns texts with lines that end at various places of chunks of 4 KiB.
fn texts(seed: u64) -> Vec<(&'static str, Vec<u8>)> {
    let draws: Vec<u64> = numbers(seed, 2).collect();
    let count = usize::try_from(draws[0] % 600).unwrap();
    let exact = |end: &str| format!("{}{end}", "x".repeat(4095 - 7) + " needle").into_bytes();
    vec![
        ("empty", Vec::new()),
        ("one", b"x".to_vec()),
        ("newlines", vec![b'\n'; 9000]),
        ("short", lines(1, 2000, 60)),
        ("long", [&lines(2, 12, 20_000)[..], b"\n"].concat()),
        ("random", lines(seed, count, 1 + draws[1] % 3000)),
        ("exact", [exact("\n"), exact("\n"), exact("\n"), exact("")].concat()),
    ]
}

/// Returns the number of lines with a needle, and these lines, each with its newline.
fn hits(text: &[u8]) -> (u64, Vec<u8>) {
    let holds = |line: &&[u8]| line.windows(6).any(|window| window == b"needle");
    let hits: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(holds).collect();
    (hits.len() as u64, hits.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect())
}

/// Runs all three ways; returns the result and the output.
fn all_ways(array: &Array, line: &str) -> (Value, Vec<u8>) {
    let line = format!("program run {line} --on all --cores 2 --output out --force --json");
    let said = run(array, &line).expect(0, &[]).json();
    let result = &said["result"];
    let ways: Vec<&Value> = result["runs"].as_array().unwrap().iter().map(|r| &r["on"]).collect();
    assert_eq!(ways, ["drives", "host", "split"]);
    let output = std::fs::read(array.path("out")).unwrap();
    assert_eq!(result["written_bytes"], output.len());
    (result.clone(), output)
}

#[test]
fn lines_reach_one_execution_whole_on_any_number_of_drives() {
    for drives in 1..=4 {
        let array = Array::up(drives, "256M");
        let segments = module(&array, "segments.wasm", SEGMENTS);
        for (at, (name, text)) in texts(40 + drives as u64).into_iter().enumerate() {
            // Both placements, and all texts on both over the numbers of drives.
            let on = if (at + drives).is_multiple_of(2) { "kv" } else { "block" };
            array.file(name, &text);
            run(&array, &format!("put {name} --chunk 4K --on {on}")).expect(0, &[]);
            let what = format!("{name} on {on} of {drives} drives");

            let (result, seen) = all_ways(&array, &format!("{segments} --object {name}"));
            assert_eq!(
                (&result["records"], &result["result"]),
                (&"lines".into(), &text.len().to_string().into())
            );
            let seen: Vec<&[u8]> = seen.split(|byte| *byte == b'>').skip(1).collect();
            assert!(seen.concat() == text, "{what}: every byte once and in order");
            let (last, others) = seen.split_last().unwrap();
            assert!(others.iter().all(|lines| lines.ends_with(b"\n")), "{what}: no line is cut");
            assert!(!last.is_empty() || text.is_empty(), "{what}: nobody runs over nothing");
            for run in result["runs"].as_array().unwrap() {
                assert_eq!(run["executions"], seen.len(), "{what}");
            }

            let grep = format!("{} --object {name} --parameter text:needle", built("rust-grep"));
            let (result, found) = all_ways(&array, &grep);
            let (count, expected) = hits(&text);
            assert_eq!(
                (&result["result"], found == expected),
                (&count.to_string().into(), true),
                "{what}"
            );
        }
    }
}

#[test]
fn elements_are_folded_in_order_and_two_objects_go_together() {
    let array = Array::up(3, "512M");
    let draws: Vec<f32> = numbers(7, 500_001).map(|draw| (draw % 1_000_003) as f32 / 7.0).collect();
    let bytes: Vec<u8> = draws.iter().flat_map(|value| value.to_le_bytes()).collect();
    array.file("x", &bytes);
    run(&array, "put x --type f32 --chunk 64K").expect(0, &[]);
    run(&array, "put x b --type f32 --chunk 64K --on block").expect(0, &[]);
    let mut sorted = draws.clone();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let largest: Vec<u8> = sorted[..20].iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut counts = [0u64; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let table: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
    for object in ["x", "b"] {
        for language in ["rust", "c"] {
            let program = built(&format!("{language}-top_k"));
            let top = all_ways(&array, &format!("{program} --object {object} --parameter u32:20"));
            assert_eq!((&top.0["result"], top.1 == largest), (&"20".into(), true), "{program}");
            let program = built(&format!("{language}-histogram"));
            let all = all_ways(&array, &format!("{program} --object {object}"));
            assert_eq!((&all.0["result"], all.1 == table), (&bytes.len().to_string().into(), true));
            assert_eq!(all.0["records"], "elements");
        }
    }

    // Elements of the second object, one after the other, and those of the first.
    let second = r#"(module
        (import "csd" "next" (func $next (param i32 i32 i32) (result i32)))
        (import "csd" "emit" (func $emit (param i32 i32)))
        (memory (export "memory") 1)
        (func $copy (param $stream i32) (local $count i32)
          (loop $more
            (local.set $count
              (call $next (local.get $stream) (i32.const 0) (i32.const 60000)))
            (call $emit (i32.const 0) (local.get $count))
            (br_if $more (local.get $count))))
        (func (export "csd_run") (result i64)
          (call $copy (i32.const 1)) (call $copy (i32.const 0)) (i64.const 1)))"#;
    array.file("second.wasm", &wat::parse_str(second).unwrap());
    let other: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
    array.file("y", &other);
    run(&array, "put y --type f32 --align x").expect(0, &[]);
    let (result, output) = all_ways(&array, "second.wasm --object x --object y --room 256K");
    let chunks = bytes.chunks(64 << 10).zip(other.chunks(64 << 10));
    let expected: Vec<u8> = chunks.flat_map(|(x, y)| [y, x].concat()).collect();
    assert_eq!((&result["result"], output == expected), (&"31".into(), true));
    assert_eq!(result["objects"], serde_json::json!(["x", "y"]));
}

#[test]
fn what_a_program_writes_goes_to_the_terminal_a_file_or_an_object() {
    let array = Array::up(2, "256M");
    let text = lines(3, 3000, 80);
    array.file("log", &text);
    run(&array, "put log --chunk 4K").expect(0, &[]);
    let grep = format!("program run {} --object log --parameter text:needle", built("c-grep"));
    let expected = hits(&text).1;
    assert!(run(&array, &format!("{grep} --output -")).expect(0, &[]).stdout == expected);
    run(&array, &format!("{grep} --output hits")).expect(0, &[]);
    assert!(std::fs::read(array.path("hits")).unwrap() == expected);
    run(&array, &format!("{grep} --output hits")).expect(1, &["hits exists", "--force"]);
    let stored = run(&array, &format!("{grep} --store found --check --json")).expect(0, &[]).json();
    assert_eq!(stored["result"]["output"]["bytes"], expected.len());
    assert!(run(&array, "get found -").expect(0, &[]).stdout == expected);
    run(&array, &format!("{grep} --store found")).expect(2, &["\"found\" exists"]);

    // Little of it crosses, and the program does not stay in the drives.
    let runs = &stored["result"]["runs"];
    let crossed = |at: usize| runs[at]["crossed_bytes"].as_u64().unwrap();
    assert!(crossed(1) > text.len() as u64, "the host reads it all: {runs}");
    assert!(runs[0]["handed_bytes"].as_u64().unwrap() > 0, "{runs}");
    let listed = run(&array, "program list --json").expect(0, &[]).json();
    for drive in listed["result"]["drives"].as_array().unwrap() {
        let programs = drive["programs"].as_array().unwrap();
        assert!(programs.iter().all(|program| program["own"] == true), "{drive}");
    }
}

#[test]
fn programs_and_objects_that_do_not_fit_are_refused_in_words() {
    let array = Array::up(2, "256M");
    let ints: Vec<u8> = (0..5000i32).flat_map(i32::to_le_bytes).collect();
    array.file("ints", &ints);
    array.file("few", &ints[..4000]);
    array.file("long", &[&[b'x'; 100_000][..], b"\n"].concat());
    let puts = "put ints --type i32 --chunk 4K;put few --type i32 --chunk 4K;\
        put ints wide --type i64 --chunk 4K;put ints other --type i32 --chunk 8K;\
        put ints f32 --type f32 --align ints;put long --chunk 4K;put ints text --chunk 4K";
    puts.split(';').for_each(|put| drop(run(&array, put).expect(0, &[])));
    let (grep, sum) = (built("rust-grep"), built("rust-histogram"));
    let odd = r#"(module (memory (export "memory") 1)
        (func (export "csd_records") (result i64) (i64.const 9))
        (func (export "csd_run") (result i64) (i64.const 0)))"#;
    array.file("odd.wasm", &wat::parse_str(odd).unwrap());
    array.file("none.wasm", b"\0asm no program at all");
    let all = [
        ("GREP --object ints", "type i32: put text with --type bytes"),
        ("GREP --object text --object text", "lines of two objects do not pair"),
        ("SUM --object ints --object few", "5000 elements and \"few\" has 1000"),
        ("SUM --object ints --object wide", "\"wide\" has 2500"),
        ("SUM --object ints --object other", "--align"),
        ("SUM --object nobody", "no object \"nobody\""),
        ("16 --object ints", "name the module, not an index"),
        ("SUM --input ints", "load the file first, or use --object"),
        ("SUM --object ints --input ints", "cannot be used with"),
        ("SUM", "--object"),
        ("SUM --object ints --drive nvme+tcp://127.0.0.1:1/nqn.x:y", "every drive"),
        ("ints --object ints", "is no WebAssembly module"),
        ("none.wasm --object ints", "a drive would refuse this program"),
        ("odd.wasm --object ints", "csd_records is 9"),
        ("GREP --object long --parameter text:x", "more than 64 KiB after chunk 1"),
        ("SUM --object ints --room 100M", "say a smaller --room"),
        ("SUM --object ints --memory 1G", "say --memory"),
    ];
    for (line, words) in all {
        let line = line.replace("GREP", &grep).replace("SUM", &sum);
        run(&array, &format!("program run {line}")).expect(2, &[words]);
    }
    run(&array, &format!("program run {sum} --object ints --object f32")).expect(0, &[]);
    run(&array, "program run missing.wasm --object ints").expect(1, &["missing.wasm"]);
}

/// Limits that end an execution in a drive end it on the host too.
#[test]
fn limits_are_the_same_on_drives_and_host() {
    let array = Array::up(2, "256M");
    array.file("x", &[b'\n'; 20_000]);
    run(&array, "put x --chunk 4K").expect(0, &[]);
    let entry = |body: &str| format!(r#"(func (export "csd_run") (result i64) {body})"#);
    module(&array, "loop.wasm", &entry("(loop $l (br $l)) (i64.const 0)"));
    module(&array, "trap.wasm", &entry("unreachable"));
    module(
        &array,
        "writes.wasm",
        &entry("(call $emit (i32.const 0) (i32.const 5000)) (i64.const 0)"),
    );
    // What memory.grow by 16 MiB gives: -1 when there is not so much.
    module(&array, "grow.wasm", &entry("(i64.extend_i32_s (memory.grow (i32.const 256)))"));
    let fold = r#"(func (export "csd_fold") (result i64) unreachable)"#;
    module(&array, "fold.wasm", &format!("{} {fold}", entry("(i64.const 0)")));
    for on in ["drives", "host", "split"] {
        let fails = |line: &str, why: &str| {
            let line = format!("program run {line} --object x --on {on}");
            run(&array, &line).expect(1, &["the program failed", why]);
        };
        fails("loop.wasm --time 100", "its time was up");
        fails("trap.wasm", "the program trapped");
        fails("writes.wasm --room 4996", "4996");
        fails("fold.wasm", "fold: the program trapped");
        let ran = run(&array, &format!("program run writes.wasm --room 5000 --object x --on {on}"));
        ran.expect(0, &[]);
        for (memory, expected) in [("8M", 0u64.wrapping_sub(5)), ("24M", 5 * 128)] {
            let line =
                format!("program run grow.wasm --object x --on {on} --memory {memory} --json");
            let grown = run(&array, &line).expect(0, &[]).json();
            assert_eq!(grown["result"]["result"], expected.to_string(), "{on}, {memory}");
        }
    }
    // Failed executions leave nothing in a drive.
    let listed = run(&array, "program list --json").expect(0, &[]).text();
    assert!(!listed.contains("\"own\":false"), "{listed}");
}

/// The number of bytes that arrive at once is unspecified. A program whose answer depends on it is
/// detected.
#[test]
fn a_program_whose_answer_depends_on_where_it_runs_is_found_out() {
    // Large enough for values of 4 MiB.
    let array = Array::up(1, "8G");
    array.file("x", &vec![b'\n'; 3 << 20]);
    run(&array, "put x --chunk 4M").expect(0, &[]);
    let first = "(i64.extend_i32_u (call $next (i32.const 0) (i32.const 0) (i32.const 8000000)))";
    let first = format!(r#"(func (export "csd_run") (result i64) {first})"#);
    module(&array, "first.wasm", &first);
    let differ = run(&array, "program run first.wasm --object x --check");
    differ.expect(3, &["answers differ: the result on drives is 1048576, on host 3145728"]);
}

#[test]
fn a_run_goes_on_after_cuts_and_a_restart_of_a_drive() {
    let proxied = ProxiedArray::new(Array::up_on_files(2, "1G"));
    let text = lines(9, 30_000, 100);
    proxied.array.file("log", &text);
    run(&proxied.array, "put log --chunk 16K").expect(0, &[]);
    let grep = format!("program run {} --object log --parameter text:needle", built("rust-grep"));
    let expected = hits(&text).1;
    let run = |name: &str| ProxiedArray::arguments(&format!("{grep} --output {name}")).join(" ");
    for cuts in [&[3][..], &[2, 9, 20]] {
        proxied.proxy.cut(EXECUTE, cuts, Door::Open);
        let line = run("out") + " --force";
        proxied.array.csd(&line.split(' ').collect::<Vec<_>>()).expect(0, &[]);
        assert_eq!(proxied.proxy.cuts(), cuts.len());
        assert!(std::fs::read(proxied.array.path("out")).unwrap() == expected, "after {cuts:?}");
    }
    // After its restart the drive knows neither the program nor the lease of its memory.
    proxied.proxy.cut(EXECUTE, &[5], Door::Held);
    let line = run("restarted");
    let words = line.split(' ').collect::<Vec<_>>();
    let running = proxied.array.spawn(&words, std::process::Stdio::null());
    wait_until("the connection is cut", || proxied.proxy.cuts() == 1);
    proxied.array.kill(1);
    proxied.restart();
    proxied.proxy.open();
    finish(running).expect(0, &[]);
    assert!(std::fs::read(proxied.array.path("restarted")).unwrap() == expected);

    // A drive that does not come back is named, with the missing part.
    proxied.proxy.cut(EXECUTE, &[5], Door::Shut);
    let line = run("lost");
    let failed = proxied.array.csd(&line.split(' ').collect::<Vec<_>>()).expect(1, &[]).json();
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("drive d1 (") && message.contains("chunk"), "{message}");
    assert!(!proxied.array.path("lost").exists());
}

/// A run that waits for one of its drives while an object is moved, and while another one gets the
/// blocks where it was, begins again with the object where it is now.
#[test]
fn a_run_whose_object_is_moved_begins_again() {
    let array = Array::up(2, "256M");
    let text = lines(10, 30_000, 100);
    array.file("log", &text);
    run(&array, "put log kv --chunk 16K").expect(0, &[]);
    run(&array, "put log block --chunk 16K --on block").expect(0, &[]);
    run(&array, "array add --drives 1").expect(0, &[]);
    let proxied = ProxiedArray::new(array);
    let (count, expected) = hits(&text);
    for object in ["kv", "block"] {
        let grep = built("rust-grep");
        let line = format!("program run {grep} --object {object} --parameter text:needle");
        let line = ProxiedArray::arguments(&format!("{line} --output {object}.out")).join(" ");
        proxied.proxy.cut(EXECUTE, &[5], Door::Held);
        let words = line.split(' ').collect::<Vec<_>>();
        let running = proxied.array.spawn(&words, std::process::Stdio::null());
        wait_until("the run is in the middle", || proxied.proxy.cuts() == 1);
        run(&proxied.array, &format!("array rebalance {object}")).expect(0, &[]);
        proxied.array.file("other", &vec![b'x'; text.len()]);
        run(&proxied.array, &format!("put other {object}-other --on {object}")).expect(0, &[]);
        proxied.proxy.open();
        let said = finish(running).expect(0, &[]).json();
        assert_eq!(said["result"]["result"], count.to_string(), "{object}");
        assert!(std::fs::read(proxied.array.path(&format!("{object}.out"))).unwrap() == expected);
    }
}
