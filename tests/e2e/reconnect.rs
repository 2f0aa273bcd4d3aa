//! Runs, puts and gets whose connection to a drive is cut in the middle. If the drive comes back,
//! even after a restart, they only take longer; if not, a run ends and reports the missing part.

use std::io::Write;
use std::process::Stdio;

use csd_initiator::Kv;
use csd_nvme::kv::Key;
use csd_reactor::Buffer;
use csd_tests::proxy::Door;
use serde_json::Value;

use crate::support::data::{numbers, small_i32};
use crate::support::direct::on_objects;
use crate::support::harness::{Array, Done, finish, wait_until};
use crate::support::proxied::{EXECUTE, ProxiedArray, RETRIEVE, STORE};

/// Memory Write.
const MEMORY_WRITE: (u32, u8) = (4, 0x05);

/// Delete of the objects' namespace.
const DELETE: (u32, u8) = (3, 0x10);

/// Ways to run, each with the drive's most frequent command.
const WAYS: [(&str, (u32, u8)); 3] = [("drives", EXECUTE), ("host", RETRIEVE), ("split", EXECUTE)];

/// Returns a command's number that belongs to a run: hosts read lives and the catalogue first.
fn first_of_run(commands: (u32, u8)) -> usize {
    if commands == RETRIEVE { 5 } else { 3 }
}

/// Asserts the report of a run that lost its second drive.
#[track_caller]
fn expect_partial(done: Done) {
    let failed = done.expect(1, &[]).json();
    let message = failed["error"]["message"].as_str().unwrap();
    let words = ["% of the run was done, there is no answer", "drive d1 (", "missing ("];
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
    assert!(!message.contains("drive d0"), "{message}");
    let partial = &failed["error"]["detail"]["partial"];
    assert!(partial["done_bytes"].as_u64() < partial["bytes"].as_u64(), "{partial}");
}

#[test]
fn a_connection_that_is_cut_and_comes_back_costs_a_run_nothing_but_time() {
    let proxied = ProxiedArray::new(Array::up(2, "1G"));
    let (_, sevens) = proxied.put("a", 61);
    for (on, commands) in WAYS {
        let first = first_of_run(commands);
        for cuts in [&[first][..], &[first, first + 2, first + 5]] {
            proxied.proxy.cut(commands, cuts, Door::Open);
            let run =
                proxied.csd(&format!("run count a --equal 7 --on {on}")).expect(0, &[]).json();
            assert_eq!(
                (&run["result"]["count"], proxied.proxy.cuts()),
                (&sevens.into(), cuts.len())
            );
            assert_eq!(run["result"]["elements"], 2_000_000, "each is looked at once");
            assert_eq!(run["warnings"], Value::Array(Vec::new()), "{on}");
        }
    }
}

#[test]
fn what_drives_and_host_write_is_whole_after_a_cut() {
    let proxied = ProxiedArray::new(Array::up(2, "1G"));
    let ((left, _), (right, _)) = (proxied.put("a", 62), proxied.put("b", 63));
    let value = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().unwrap());
    let pairs = left.chunks(4).zip(right.chunks(4));
    let sums: Vec<u8> = pairs.flat_map(|(a, b)| (value(a) + value(b)).to_le_bytes()).collect();
    for (on, commands) in WAYS {
        // The host reads the catalogue before and after with the same command.
        let cuts = if commands == RETRIEVE { [20, 30] } else { [4, 6] };
        proxied.proxy.cut(commands, &cuts, Door::Open);
        proxied.csd(&format!("run vector-add a b -o {on} --on {on}")).expect(0, &[]);
        assert_eq!(proxied.proxy.cuts(), 2, "{on}");
        assert!(proxied.array.csd(&["get", on, "-"]).expect(0, &[]).stdout == sums, "{on}");
    }
}

#[test]
fn a_drive_that_does_not_come_back_leaves_a_partial_result() {
    let proxied = ProxiedArray::new(Array::up(2, "1G"));
    let (_, sevens) = proxied.put("a", 64);
    for (on, commands) in WAYS {
        proxied.proxy.cut(commands, &[first_of_run(commands)], Door::Shut);
        expect_partial(proxied.csd(&format!("run count a --equal 7 --on {on}")));
        proxied.proxy.open();
        // Objects have no copies: only the drive itself can bring the answer.
        proxied.proxy.cut(commands, &[], Door::Open);
        let again = proxied.csd(&format!("run count a --equal 7 --on {on}")).expect(0, &[]).json();
        assert_eq!(again["result"]["count"], sevens, "{on}");
    }
    proxied.proxy.cut(EXECUTE, &[3], Door::Shut);
    expect_partial(proxied.csd("run vector-add a a -o sum"));
    assert!(!proxied.array.csd(&["ls"]).expect(0, &[]).text().contains("sum"));
}

#[test]
fn a_connection_that_breaks_again_and_again_is_given_up() {
    let proxied = ProxiedArray::new(Array::up(2, "1G"));
    proxied.put("a", 65);
    let cuts: Vec<usize> = (5..).step_by(4).take(4).collect();
    proxied.proxy.cut(RETRIEVE, &cuts, Door::Open);
    expect_partial(proxied.csd("run count a --equal 7 --on host"));
    assert_eq!(proxied.proxy.cuts(), 4, "three are made good");
}

/// Puts a graph whose rows lie on both drives, and returns its ranks.
fn graph(proxied: &ProxiedArray) -> Vec<u8> {
    let draws: Vec<u64> = numbers(66, 40_000).map(|draw| draw % 3000).collect();
    let edges: String = draws.chunks(2).map(|e| format!("{} {}\n", e[0], e[1])).collect();
    proxied.array.file("edges", edges.as_bytes());
    let put = ["put", "edges", "g", "--graph", "--nodes", "3000", "--chunk", "4K"];
    proxied.array.csd(&put).expect(0, &[]);
    let rank = ["run", "page-rank", "g", "-o", "undisturbed", "--on", "host"];
    proxied.array.csd(&rank).expect(0, &[]);
    proxied.array.csd(&["get", "undisturbed", "-"]).expect(0, &[]).stdout
}

#[test]
fn page_rank_goes_on_after_cuts_between_its_steps_and_in_them() {
    let proxied = ProxiedArray::new(Array::up(2, "1G"));
    let ranks = graph(&proxied);
    for (name, commands) in [("in", EXECUTE), ("between", MEMORY_WRITE)] {
        proxied.proxy.cut(commands, &[2, 5], Door::Open);
        proxied.csd(&format!("run page-rank g -o {name}")).expect(0, &[]);
        assert_eq!(proxied.proxy.cuts(), 2, "{name}");
        assert!(proxied.array.csd(&["get", name, "-"]).expect(0, &[]).stdout == ranks, "{name}");
    }
}

/// A drive's memory namespace is empty after a start, so the vector sent before is lost: ranks
/// computed from zeros would look like ranks.
#[test]
fn a_drive_that_is_restarted_in_a_run_is_sent_the_vector_again() {
    let proxied = ProxiedArray::new(Array::up_on_files(2, "1G"));
    let ranks = graph(&proxied);
    proxied.proxy.cut(EXECUTE, &[5], Door::Held);
    let rank = ProxiedArray::arguments("run page-rank g -o ranks");
    let running = proxied.array.spawn(&rank, Stdio::null());
    wait_until("the connection is cut", || proxied.proxy.cuts() == 1);
    proxied.array.kill(1);
    proxied.restart();
    proxied.proxy.open();
    finish(running).expect(0, &[]);
    assert!(proxied.proxy.passed() > 5, "it went on");
    assert!(proxied.array.csd(&["get", "ranks", "-"]).expect(0, &[]).stdout == ranks);
}

/// A run that is disconnected for long loses the memory of its drive to another run, which writes
/// its own vector there: products with that vector would look right.
#[test]
fn a_run_whose_drive_another_run_took_meanwhile_says_so() {
    for command in [EXECUTE, MEMORY_WRITE] {
        let proxied = ProxiedArray::new(Array::up(2, "1G"));
        graph(&proxied);
        proxied.proxy.cut(command, &[3], Door::Held);
        let running = proxied
            .array
            .spawn(&ProxiedArray::arguments("run page-rank g -o ranks"), Stdio::null());
        wait_until("the connection is cut", || proxied.proxy.cuts() == 1);
        take_memory(&proxied.array);
        proxied.proxy.open();
        let failed = finish(running).expect(1, &[]).json();
        let message = failed["error"]["message"].as_str().unwrap();
        assert!(
            message.starts_with("the memory of drive d1 is in use by another run"),
            "{message}"
        );
        assert!(!proxied.array.csd(&["ls"]).expect(0, &[]).text().contains("ranks"));
        assert!(take_memory(&proxied.array), "it left the other run its memory");
    }
}

/// Takes over the drive's memory as a run does; returns true if it had it before.
fn take_memory(array: &Array) -> bool {
    on_objects(array, 1, async |objects: &Kv| {
        let (key, value) = (Key::new(&[0x04]).unwrap(), [0xAA; 16]);
        let before = objects.retrieve(&key, 16).await.unwrap();
        objects.store(&key, vec![Buffer::from_slice(&value)], 0).await.unwrap();
        before.as_deref() == Some(&value[..])
    })
}

/// Half of the object is stored when the drive dies, and the other half follows once it is back.
#[test]
fn a_put_goes_on_once_its_drive_was_started_again() {
    let array = Array::up_on_files(2, "256M");
    let (bytes, _) = small_i32(65, 2_000_000);
    let mut put = array.spawn(&["put", "-", "x"], Stdio::piped());
    let mut input = put.child.stdin.take().unwrap();
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    input.write_all(first).unwrap();
    wait_until("the put has begun", || array.csd(&["ls", "--all"]).text().contains('x'));
    array.kill(1);
    array.csd(&["array", "up"]).expect(0, &[]);
    input.write_all(rest).unwrap();
    drop(input);
    finish(put).expect(0, &[]);
    assert!(array.csd(&["get", "x", "-"]).expect(0, &[]).stdout == bytes);
}

#[test]
fn puts_and_gets_send_again_what_a_cut_connection_had_not_acknowledged() {
    let proxied = ProxiedArray::new(Array::up(2, "1G"));
    let (bytes, _) = small_i32(66, 5_000_000);
    proxied.array.file("x", &bytes);
    proxied.proxy.cut(STORE, &[6, 9], Door::Open);
    proxied.csd("put x").expect(0, &[]);
    assert_eq!(proxied.proxy.cuts(), 2);
    proxied.proxy.cut(RETRIEVE, &[6, 9], Door::Open);
    proxied.csd("get x back").expect(0, &[]);
    assert_eq!(proxied.proxy.cuts(), 2);
    assert!(std::fs::read(proxied.array.path("back")).unwrap() == bytes);
}

/// From the first records, by which the votes are decided, to the last claim that is deleted.
#[test]
fn a_cut_at_each_command_costs_a_put_and_a_get_nothing_but_time() {
    let proxied = ProxiedArray::new(Array::up(2, "1G"));
    let (bytes, _) = small_i32(67, 100_000);
    proxied.array.file("x", &bytes);
    for commands in [RETRIEVE, STORE, DELETE] {
        let mut at = 1;
        loop {
            proxied.proxy.cut(commands, &[at], Door::Open);
            proxied.csd("put x").expect(0, &[]);
            let is_past_the_last = proxied.proxy.cuts() == 0;
            proxied.proxy.cut(commands, &[at], Door::Open);
            proxied.csd("get x back --force").expect(0, &[]);
            assert!(std::fs::read(proxied.array.path("back")).unwrap() == bytes);
            proxied.array.csd(&["rm", "x"]).expect(0, &[]);
            if is_past_the_last {
                break;
            }
            at += 1;
        }
        assert!(at > 2, "{commands:?}: a put sends {} of them", at - 1);
    }
}

/// Several objects in flight at once, while the connections are cut, and while the drive is killed
/// and started again.
#[test]
fn folders_and_lists_of_files_go_on_too() {
    let proxied = ProxiedArray::new(Array::up_on_files(2, "1G"));
    std::fs::create_dir(proxied.array.path("data")).unwrap();
    let files: Vec<String> = (0..12).map(|number| format!("data/f{number}")).collect();
    let content: Vec<Vec<u8>> = (0..12).map(|seed| small_i32(seed, 400_000).0).collect();
    for (file, bytes) in files.iter().zip(&content) {
        proxied.array.file(file, bytes);
    }
    let each = format!("put --each {}", files.join(" "));
    let lines = [("put -r data p", STORE), (&each, STORE), ("get -r p back", RETRIEVE)];
    for (line, command) in lines {
        // A get of a folder retrieves little more than the chunks.
        let at: &[_] = if command == RETRIEVE { &[2, 4] } else { &[15, 20] };
        proxied.proxy.cut(command, at, Door::Open);
        proxied.csd(line).expect(0, &[]);
        assert_eq!(proxied.proxy.cuts(), 2, "{line}");
    }
    let names: Vec<&str> = files.iter().filter_map(|file| file.strip_prefix("data/")).collect();
    proxied.csd(&format!("rm {}", names.join(" "))).expect(0, &[]);
    let lines = [("put -r data again", STORE), (&each, STORE), ("get -r again more", RETRIEVE)];
    for (line, command) in lines {
        let at = if command == RETRIEVE { 3 } else { 15 };
        proxied.proxy.cut(command, &[at], Door::Held);
        let running = proxied.array.spawn(&ProxiedArray::arguments(line), Stdio::null());
        wait_until(line, || proxied.proxy.cuts() == 1);
        proxied.array.kill(1);
        proxied.restart();
        proxied.proxy.open();
        finish(running).expect(0, &[]);
    }
    for (at, bytes) in content.iter().enumerate() {
        let of = |path: &str| std::fs::read(proxied.array.path(path)).unwrap();
        assert!(of(&format!("more/f{at}")) == *bytes, "f{at}");
        assert!(of(&format!("back/f{at}")) == *bytes, "f{at}");
        let stored = proxied.array.csd(&["get", &format!("f{at}"), "-"]).expect(0, &[]).stdout;
        assert!(stored == *bytes, "f{at}");
    }
}
