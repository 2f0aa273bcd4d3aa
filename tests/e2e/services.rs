//! Services of drives that users list, pause and limit while the drives run.

use serde_json::{Value, json};

use crate::support::drive::{Drive, kv};
use crate::support::harness::{Array, wait_until};
use crate::support::json_page::Page;
use crate::support::metrics::{free_address, scrape};

/// Returns the services of the first drive in an answer, which must be as the page says.
fn services(answer: &Value) -> Vec<Value> {
    let command = format!("csd {}", answer["command"].as_str().unwrap());
    let wrong = Page::read().wrong("", &command, &answer["result"]);
    assert!(wrong.is_empty(), "{wrong:#?}");
    answer["result"]["drives"][0]["services"].as_array().unwrap().clone()
}

fn names(services: &[Value]) -> Vec<&str> {
    services.iter().map(|service| service["name"].as_str().unwrap()).collect()
}

#[test]
fn services_are_listed_paused_limited_and_resumed() {
    let array = Array::up(2, "256M");
    array.file("x.bin", &[7; 8 << 20]);
    array.csd(&["put", "x.bin", "x"]).expect(0, &[]);
    let ask = |line: &str| {
        let words: Vec<&str> = line.split(' ').chain(["--json"]).collect();
        services(&array.csd(&words).expect(0, &[]).json())
    };
    let all = ask("drive service");
    assert_eq!(names(&all), ["clean", "checkpoint", "scrub", "peers"]);
    let states: Vec<_> = all.iter().map(|service| service["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["runs", "runs", "paused", "runs"], "nobody asked for a scrub");
    let [clean] = &ask("drive service pause clean d1")[..] else { panic!("one service") };
    assert_eq!((&clean["name"], &clean["state"]), (&json!("clean"), &json!("paused")));
    let state = |drive: &str| ask(&format!("drive service list {drive}"))[0]["state"].clone();
    assert_eq!((state("d0"), state("d1")), (json!("runs"), json!("paused")));
    ask("drive service rate scrub 50M/s");
    let limited = ask("drive service share scrub 25%");
    assert_eq!(limited[0]["rate_bytes_per_s"], json!(50 << 20));
    assert_eq!((&limited[0]["share_percent"], &limited[0]["steps"]), (&json!(25), &json!(0)));
    ask("drive service resume scrub");
    wait_until("the scrub works", || {
        ask("drive service list")[2]["bytes"].as_u64().unwrap() > 4 << 20
    });
    let free = ask("drive service rate scrub none");
    assert_eq!((&free[0]["rate_bytes_per_s"], &free[0]["state"]), (&Value::Null, &json!("runs")));
    let text = array.csd(&["drive", "service", "pause", "checkpoint"]).expect(0, &[]).text();
    assert!(text.contains("while checkpoint is paused, the next start"), "{text}");
    let status = array.csd(&["drive", "status", "d1"]).expect(0, &[]).text();
    for line in ["service   clean: paused; ", "service   scrub: runs, at most 25 % of the time; "] {
        assert_eq!(status.matches(line).count(), 1, "{line:?}: {status}");
    }
    let status = array.csd(&["drive", "status", "d1", "--json"]).expect(0, &[]).json();
    assert_eq!(services(&status).len(), 4);
    array.csd(&["get", "x", "back"]).expect(0, &[]);
}

#[test]
fn names_and_values_that_cannot_be_are_refused() {
    let array = Array::up(1, "128M");
    let has = "it has clean, checkpoint, scrub, peers";
    for (line, words) in [
        ("pause nothing", &["d0 has no service \"nothing\"", has][..]),
        ("rate Clean 1M", &["no service \"Clean\"", has]),
        ("resume checkpoints-of-all-segments", &["no service", has]),
        ("pause clean d7", &["no drive \"d7\""]),
        ("rate clean 0", &["invalid value '0'", "at least 1 byte in a second"]),
        ("rate clean fast", &["invalid value 'fast'", "is not a size"]),
        ("rate clean 50M/h", &["invalid value '50M/h'"]),
        ("share clean 0%", &["invalid value '0%'", "pause the service instead"]),
        ("share clean 101%", &["invalid value '101%'", "percentage"]),
        ("share clean", &["PERCENT"]),
        ("stop clean", &["unrecognized subcommand 'stop'"]),
    ] {
        let words_of = format!("drive service {line}");
        array.csd(&words_of.split(' ').collect::<Vec<_>>()).expect(2, words);
    }
    let all = services(&array.csd(&["drive", "service", "--json"]).expect(0, &[]).json());
    assert!(all.iter().all(|service| service["share_percent"] == 100), "nothing was set");
    array.kill(0);
    array.csd(&["drive", "service", "pause", "clean"]).expect(4, &["warning: drive d0"]);
}

#[test]
fn settings_are_in_the_metrics_and_end_with_the_drive() {
    let address = free_address();
    let mut drive = Drive::serve("m", &["--metrics", &address.to_string(), "--scrub", "1M"]);
    let page = || scrape(address, "GET /metrics HTTP/1.0\r\n\r\n");
    let has = |line: &str| {
        let page = page();
        assert!(page.contains(&format!("\n{line}\n")), "{line}: {page}");
    };
    let order = |drive: &Drive, line: &str| {
        let url = drive.url();
        let words: Vec<&str> = line.split(' ').chain([url.as_str()]).collect();
        let done = drive.array.csd(&[&["drive", "service"], &words[..]].concat());
        done.expect(0, &[]).text().to_string()
    };
    has("csd_service_paused{service=\"clean\"} 0");
    has("csd_service_rate_max_bytes_per_second{service=\"scrub\"} 1048576");
    for service in ["clean", "checkpoint", "scrub"] {
        let text = order(&drive, &format!("pause {service}"));
        assert!(text.contains(&format!("while {service} is paused, ")), "{text}");
        has(&format!("csd_service_paused{{service=\"{service}\"}} 1"));
        has(&format!("csd_service_failed{{service=\"{service}\"}} 0"));
    }
    assert!(order(&drive, "share clean 10%").contains("10 %"));
    has("csd_service_share_max_percent{service=\"clean\"} 10");
    let words = ["it has clean, checkpoint, scrub"];
    drive.array.csd(&["drive", "service", "pause", "peers", &drive.url()]).expect(2, &words);
    let (_admin, mut io) = drive.connect();
    for number in 0..100u8 {
        assert_eq!(io.command_in_capsule(kv(0x01, &[number], 3000), &[number; 3000]).status, 0);
    }
    drop((_admin, io));
    drive.stop().expect(0, &["a service has new settings"]);
    drive.array.csd(&["drive", "check", "m"]).expect(0, &[]);
    drive.start("m", &["--metrics", &address.to_string()]);
    has("csd_service_paused{service=\"clean\"} 0");
    has("csd_service_share_max_percent{service=\"clean\"} 100");
    let (_admin, mut io) = drive.connect();
    for number in 0..100u8 {
        let read = io.command(kv(0x02, &[number], 3000), &[], 3000);
        assert_eq!((read.status, &read.data[..]), (0, &[number; 3000][..]));
    }
}

#[test]
fn a_full_drive_says_that_its_cleaning_is_paused_and_takes_deletes() {
    let mut drive = Drive::serve("memory", &[]);
    let url = drive.url();
    drive.array.csd(&["drive", "service", "pause", "clean", &url]).expect(0, &[]);
    let (_admin, mut io) = drive.connect();
    let key = |number: u32| number.to_be_bytes();
    let value = vec![7; 200_000];
    let full = (0..).find(|number| {
        let stored = io.command(kv(0x01, &key(*number), 200_000), &value, 0).status;
        assert!(matches!(stored, 0 | 0x81), "{stored:#x}");
        stored == 0x81
    });
    let full = full.unwrap();
    // Stores that replace what was deleted take the segments that are still free.
    for number in 0..full {
        assert_eq!(io.command(kv(0x10, &key(number), 0), &[], 0).status, 0, "{number} of {full}");
    }
    for number in 0..full {
        let stored = io.command(kv(0x01, &key(number), 200_000), &value, 0).status;
        assert_eq!(stored, 0, "{number} of {full}");
    }
    let words = ["segments are free and its cleaning is paused", "service resume clean"];
    drive.array.csd(&["drive", "status", &url]).expect(4, &words);
    for number in 0..full {
        assert_eq!(io.command(kv(0x10, &key(number), 0), &[], 0).status, 0, "{number} of {full}");
    }
    assert_eq!(io.command(kv(0x01, &key(0), 200_000), &value, 0).status, 0);
    drop((_admin, io));
    drive.stop().expect(0, &["the drive is full, and its cleaning is paused"]);
}

#[test]
fn duplicate_chunks_are_counted_and_said() {
    let address = free_address();
    let options = ["--metrics", &address.to_string(), "--dedup", "4K"];
    let drive = Drive::serve("memory", &options);
    let (_admin, mut io) = drive.connect();
    for number in 0..40u8 {
        let value = [number % 10; 16 << 10];
        assert_eq!(io.command(kv(0x01, &[number], 16 << 10), &value, 0).status, 0);
    }
    let url = drive.url();
    let ask = || {
        let answer = drive.array.csd(&["drive", "service", "list", &url, "--json"]).expect(0, &[]);
        services(&answer.json()).into_iter().find(|one| one["name"] == "dedup").unwrap()
    };
    wait_until("everything is counted", || ask()["bytes"] == json!(40 * (16 << 10)));
    // Ten values of four equal chunks each: of 160 chunks ten are different.
    let words = "93.8 % duplicate in chunks of 4096 B";
    assert_eq!(ask()["found"], json!(words));
    for command in [&["drive", "service", "list", &url][..], &["drive", "status", &url]] {
        let text = drive.array.csd(command).expect(0, &[]).text();
        assert!(text.contains(words), "{text}");
    }
    let page = scrape(address, "GET /metrics HTTP/1.0\r\n\r\n");
    for line in ["csd_dedup_chunks_total 160", "csd_dedup_unique_bytes 40960"] {
        assert!(page.contains(&format!("\n{line}\n")), "{line}: {page}");
    }
    let refused = drive.array.csd(&["drive", "serve", "--media", "memory", "--policy", "bts"]);
    refused.expect(2, &["--dedup"]);
    for wrong in ["100", "3K", "128K", "64"] {
        let args = ["drive", "serve", "--media", "memory", "--size", "256M", "--dedup", wrong];
        let words = ["invalid value", "a chunk is a power of two from 128 to 64K"];
        drive.array.csd(&args).expect(2, &words);
    }
}

#[test]
fn a_full_table_of_chunks_says_that_it_samples() {
    let address = free_address();
    let metrics = ["--metrics", &address.to_string()];
    let counts = ["--dedup", "128", "--dedup-memory", "64K"];
    let drive = Drive::serve("memory", &[&counts[..], &metrics[..]].concat());
    let (_admin, mut io) = drive.connect();
    // Some 5,000 different chunks, five times as many as the table has room for.
    for number in 0..40u32 {
        let chunk = |at: u32| (number * 128 + at).to_le_bytes().repeat(32);
        let value: Vec<u8> = (0..128).flat_map(chunk).collect();
        assert_eq!(io.command(kv(0x01, &number.to_be_bytes(), 16 << 10), &value, 0).status, 0);
    }
    let url = drive.url();
    let status = || drive.array.csd(&["drive", "status", &url]).expect(0, &[]).text();
    wait_until("it says so", || status().contains(" in chunks of 128 B, 1 of "));
    let text = status();
    assert!(text.contains(" sampled"), "{text}");
    let page = scrape(address, "GET /metrics HTTP/1.0\r\n\r\n");
    let sampling = page.lines().find_map(|line| line.strip_prefix("csd_dedup_sampling "));
    assert!(sampling.unwrap().parse::<u64>().unwrap() > 1, "{page}");
}

#[test]
fn the_core_that_counts_is_chosen_by_a_policy_that_is_changed_while_it_runs() {
    let drive = Drive::serve("memory", &["--cores", "2", "--dedup", "4K", "--policy", "bts"]);
    let url = drive.url();
    let (_admin, mut io) = drive.connect();
    let mut stored = 0;
    let mut store = |values: u8| {
        for number in 0..values {
            assert_eq!(io.command(kv(0x01, &[number], 16 << 10), &[number; 16 << 10], 0).status, 0);
        }
        stored += u64::from(values) * (16 << 10);
        stored
    };
    let ask = |command: &str| {
        let words: Vec<&str> = command.split(' ').chain([url.as_str(), "--json"]).collect();
        drive.array.csd(&words).expect(0, &[]).json()
    };
    let dedup =
        |answer: &Value| services(answer).into_iter().find(|one| one["name"] == "dedup").unwrap();
    let all_are_counted = |bytes: u64| {
        wait_until("everything is counted", || {
            dedup(&ask("drive service list"))["bytes"] == json!(bytes)
        });
    };
    all_are_counted(store(200));
    let trace = |last: &str| {
        let answer = ask(&format!("drive trace --last {last}"));
        let wrong = Page::read().wrong("", "csd drive trace", &answer["result"]);
        assert!(wrong.is_empty(), "{wrong:#?}");
        answer["result"]["drives"][0].clone()
    };
    let of_bts = trace("256");
    assert_eq!((&of_bts["policy"], &of_bts["cores"]), (&json!("bts"), &json!(2)));
    let latest = of_bts["latest"].as_array().unwrap();
    assert_eq!(latest.len() as u64, of_bts["decisions"].as_u64().unwrap().min(256));
    let reasons = ["idle, at random", "least used"].map(Value::from);
    for entry in latest {
        assert!(reasons.contains(&entry["reason"]), "{entry}");
        assert!(entry["went_to"].as_u64().unwrap() < 2, "{entry}");
    }
    // No task is lost whatever the policy becomes.
    for (policy, other) in [("inline", "bts"), ("adaptive", "local")] {
        let changed = ask(&format!("drive service policy dedup {policy}"));
        assert_eq!(dedup(&changed)["policy"], policy);
        store(40);
        ask(&format!("drive service policy dedup {other}"));
        all_are_counted(store(40));
    }
    all_are_counted(store(1));
    let last = trace("1");
    assert_eq!(last["policy"], "local");
    assert_eq!(last["latest"][0]["reason"], "where it arose");
    assert_eq!(last["latest"].as_array().unwrap().len(), 1);
    let text = drive.array.csd(&["drive", "trace", &url]).expect(0, &[]).text();
    assert!(text.contains("went to") && text.contains("2 cores, policy local, "), "{text}");
    let words = ["works where its data is"];
    drive.array.csd(&["drive", "service", "policy", "scrub", "bts", &url]).expect(2, &words);
    let words = ["there is no policy \"fifo\": inline, local, bts or adaptive"];
    drive.array.csd(&["drive", "service", "policy", "dedup", "fifo", &url]).expect(2, &words);
}
