//! Runs whose connection to a drive is cut in the middle. If the drive comes back, even after a
//! restart, the run only takes longer; if not, the run ends and reports the missing part.

use std::net::SocketAddr;
use std::process::Stdio;

use csd_initiator::{Address, Controller, Kv, Options};
use csd_nvme::kv::Key;
use csd_reactor::{Buffer, block_on};
use serde_json::Value;

use crate::harness::{Array, Done, finish, numbers, small_i32, wait_until};
use crate::proxy::{Door, EXECUTE, MEMORY_WRITE, Proxy, RETRIEVE};

/// Array of two drives, and a proxy in front of the second one.
pub(crate) struct Cut {
    pub(crate) array: Array,
    pub(crate) proxy: Proxy,
}

impl Cut {
    pub(crate) fn new(array: Array) -> Self {
        let address = second(&array);
        let proxy = Proxy::before(address);
        let file = std::fs::read_to_string(array.path("csd-array.toml")).unwrap();
        let proxied = file.replace(&address.to_string(), &format!("127.0.0.1:{}", proxy.port));
        assert_ne!(file, proxied);
        array.file("proxied.toml", proxied.as_bytes());
        Self { array, proxy }
    }

    /// Runs `csd` through the proxy.
    fn csd(&self, line: &str) -> Done {
        self.array.csd(&Self::proxied(line))
    }

    pub(crate) fn proxied(line: &str) -> Vec<&str> {
        line.split_whitespace().chain(["--array", "proxied.toml", "--json"]).collect()
    }

    /// Puts 8 MB of i32 in small chunks, `b` as `a` lies; returns the data and how many of them are
    /// 7.
    pub(crate) fn put(&self, name: &str, seed: u64) -> (Vec<u8>, u64) {
        let (bytes, sevens) = small_i32(seed, 2_000_000);
        self.array.file("x.bin", &bytes);
        let put = ["put", "x.bin", name, "--type", "i32", "--chunk", "64K"];
        let align: &[&str] = if name == "b" { &["--align", "a"] } else { &[] };
        self.array.csd(&[&put[..], align].concat()).expect(0, &[]);
        (bytes, sevens)
    }
}

/// Returns the address of the second drive.
pub(crate) fn second(array: &Array) -> SocketAddr {
    let url = array.drives()[1]["url"].as_str().unwrap().to_owned();
    url.strip_prefix("nvme+tcp://").unwrap().split('/').next().unwrap().parse().unwrap()
}

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
    let cut = Cut::new(Array::up(2, "1G"));
    let (_, sevens) = cut.put("a", 61);
    for (on, commands) in WAYS {
        let first = first_of_run(commands);
        for cuts in [&[first][..], &[first, first + 2, first + 5]] {
            cut.proxy.cut(commands, cuts, Door::Open);
            let run = cut.csd(&format!("run count a --equal 7 --on {on}")).expect(0, &[]).json();
            assert_eq!((&run["result"]["count"], cut.proxy.cuts()), (&sevens.into(), cuts.len()));
            assert_eq!(run["result"]["elements"], 2_000_000, "each is looked at once");
            assert_eq!(run["warnings"], Value::Array(Vec::new()), "{on}");
        }
    }
}

#[test]
fn what_drives_and_host_write_is_whole_after_a_cut() {
    let cut = Cut::new(Array::up(2, "1G"));
    let ((left, _), (right, _)) = (cut.put("a", 62), cut.put("b", 63));
    let value = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().unwrap());
    let pairs = left.chunks(4).zip(right.chunks(4));
    let sums: Vec<u8> = pairs.flat_map(|(a, b)| (value(a) + value(b)).to_le_bytes()).collect();
    for (on, commands) in WAYS {
        // The host reads the catalogue before and after with the same command.
        let cuts = if commands == RETRIEVE { [20, 30] } else { [4, 6] };
        cut.proxy.cut(commands, &cuts, Door::Open);
        cut.csd(&format!("run vector-add a b -o {on} --on {on}")).expect(0, &[]);
        assert_eq!(cut.proxy.cuts(), 2, "{on}");
        assert!(cut.array.csd(&["get", on, "-"]).expect(0, &[]).stdout == sums, "{on}");
    }
}

#[test]
fn a_drive_that_does_not_come_back_leaves_a_partial_result() {
    let cut = Cut::new(Array::up(2, "1G"));
    let (_, sevens) = cut.put("a", 64);
    for (on, commands) in WAYS {
        cut.proxy.cut(commands, &[first_of_run(commands)], Door::Shut);
        expect_partial(cut.csd(&format!("run count a --equal 7 --on {on}")));
        cut.proxy.open();
        // Objects have no copies: only the drive itself can bring the answer.
        cut.proxy.cut(commands, &[], Door::Open);
        let again = cut.csd(&format!("run count a --equal 7 --on {on}")).expect(0, &[]).json();
        assert_eq!(again["result"]["count"], sevens, "{on}");
    }
    cut.proxy.cut(EXECUTE, &[3], Door::Shut);
    expect_partial(cut.csd("run vector-add a a -o sum"));
    assert!(!cut.array.csd(&["ls"]).expect(0, &[]).text().contains("sum"));
}

#[test]
fn a_connection_that_breaks_again_and_again_is_given_up() {
    let cut = Cut::new(Array::up(2, "1G"));
    cut.put("a", 65);
    let cuts: Vec<usize> = (5..).step_by(4).take(4).collect();
    cut.proxy.cut(RETRIEVE, &cuts, Door::Open);
    expect_partial(cut.csd("run count a --equal 7 --on host"));
    assert_eq!(cut.proxy.cuts(), 4, "three are made good");
}

/// Puts a graph whose rows lie on both drives, and returns its ranks.
fn graph(cut: &Cut) -> Vec<u8> {
    let draws: Vec<u64> = numbers(66, 40_000).map(|draw| draw % 3000).collect();
    let edges: String = draws.chunks(2).map(|e| format!("{} {}\n", e[0], e[1])).collect();
    cut.array.file("edges", edges.as_bytes());
    let put = ["put", "edges", "g", "--graph", "--nodes", "3000", "--chunk", "4K"];
    cut.array.csd(&put).expect(0, &[]);
    let rank = ["run", "page-rank", "g", "-o", "undisturbed", "--on", "host"];
    cut.array.csd(&rank).expect(0, &[]);
    cut.array.csd(&["get", "undisturbed", "-"]).expect(0, &[]).stdout
}

#[test]
fn page_rank_goes_on_after_cuts_between_its_steps_and_in_them() {
    let cut = Cut::new(Array::up(2, "1G"));
    let ranks = graph(&cut);
    for (name, commands) in [("in", EXECUTE), ("between", MEMORY_WRITE)] {
        cut.proxy.cut(commands, &[2, 5], Door::Open);
        cut.csd(&format!("run page-rank g -o {name}")).expect(0, &[]);
        assert_eq!(cut.proxy.cuts(), 2, "{name}");
        assert!(cut.array.csd(&["get", name, "-"]).expect(0, &[]).stdout == ranks, "{name}");
    }
}

/// A drive's memory namespace is empty after a start, so the vector sent before is lost: ranks
/// computed from zeros would look like ranks.
#[test]
fn a_drive_that_is_restarted_in_a_run_is_sent_the_vector_again() {
    let cut = Cut::new(Array::up_on_files(2, "1G"));
    let ranks = graph(&cut);
    cut.proxy.cut(EXECUTE, &[5], Door::Held);
    let rank = Cut::proxied("run page-rank g -o ranks");
    let running = cut.array.spawn(&rank, Stdio::null());
    wait_until("the connection is cut", || cut.proxy.cuts() == 1);
    cut.array.kill(1);
    cut.array.csd(&["array", "up"]).expect(0, &[]);
    cut.proxy.redirect(second(&cut.array));
    cut.proxy.open();
    finish(running).expect(0, &[]);
    assert!(cut.proxy.passed() > 5, "it went on");
    assert!(cut.array.csd(&["get", "ranks", "-"]).expect(0, &[]).stdout == ranks);
}

/// A run that is disconnected for long loses the memory of its drive to another run, which writes
/// its own vector there: products with that vector would look right.
#[test]
fn a_run_whose_drive_another_run_took_meanwhile_says_so() {
    for command in [EXECUTE, MEMORY_WRITE] {
        let cut = Cut::new(Array::up(2, "1G"));
        graph(&cut);
        cut.proxy.cut(command, &[3], Door::Held);
        let running = cut.array.spawn(&Cut::proxied("run page-rank g -o ranks"), Stdio::null());
        wait_until("the connection is cut", || cut.proxy.cuts() == 1);
        take_memory(&cut.array);
        cut.proxy.open();
        let failed = finish(running).expect(1, &[]).json();
        let message = failed["error"]["message"].as_str().unwrap();
        assert!(
            message.starts_with("the memory of drive d1 is in use by another run"),
            "{message}"
        );
        assert!(!cut.array.csd(&["ls"]).expect(0, &[]).text().contains("ranks"));
        assert!(take_memory(&cut.array), "it left the other run its memory");
    }
}

/// Takes over the drive's memory as a run does; returns true if it had it before.
fn take_memory(array: &Array) -> bool {
    let target: Address = array.drives()[1]["url"].as_str().unwrap().parse().unwrap();
    let body = move || async move {
        let controller = Controller::connect(&target, &Options::default()).await.unwrap();
        let objects = Kv::open(&controller, 3).unwrap();
        let (key, value) = (Key::new(&[0x04]).unwrap(), [0xAA; 16]);
        let before = objects.retrieve(&key, 16).await.unwrap();
        objects.store(&key, vec![Buffer::from_slice(&value)], 0).await.unwrap();
        controller.disconnect().await;
        before.as_deref() == Some(&value[..])
    };
    block_on(&csd_reactor::Config::default(), body).unwrap()
}
