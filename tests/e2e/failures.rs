//! Drives that are down or die, interrupted puts, full and corrupt media.

use std::io::Write;
use std::process::Stdio;

use csd_initiator::Kv;
use csd_nvme::kv::Key;
use csd_reactor::Buffer;
use csd_store::catalogue;
use csd_tests::proxy::Door;
use rustix::process::Signal;

use crate::support::data::small_i32;
use crate::support::direct::on_objects;
use crate::support::harness::{Array, finish, signal, wait_until};
use crate::support::proxied::{ProxiedArray, RETRIEVE};

#[test]
fn a_drive_that_is_down_is_named_and_a_minority_of_them_only_degrades() {
    let (bytes, sevens) = small_i32(30, 2_000_000);
    let array = Array::up_on_files(4, "1G");
    array.file("x.bin", &bytes);
    array.csd(&["put", "x.bin", "before", "--type", "i32"]).expect(0, &[]);
    array.kill(2);
    let down = "drive d2 (127.0.0.1:";
    array.csd(&["array", "status"]).expect(4, &[down, "is down"]);
    array.csd(&["ls"]).expect(4, &[down]);
    // A quarter of its chunks is on the drive that is down.
    array.csd(&["get", "before", "back"]).expect(1, &[down, "is down"]);
    assert!(!array.path("back").exists() && !array.path("back.part").exists());
    for on in ["drives", "host", "split"] {
        let count = ["run", "count", "before", "--equal", "7", "--on", on];
        array.csd(&count).expect(1, &[down, "is down"]);
    }
    let put = ["put", "x.bin", "during", "--type", "i32", "--json"];
    let put = array.csd(&put).expect(4, &[]).json();
    assert_eq!(put["result"]["drives"], serde_json::json!([0, 1, 3]));
    assert!(put["warnings"][0].as_str().unwrap().starts_with("drive d2"), "{put}");
    let count = ["run", "count", "during", "--equal", "7", "--on", "all", "--json"];
    assert_eq!(array.csd(&count).expect(4, &[]).json()["result"]["count"], sevens);
    array.csd(&["rm", "during"]).expect(4, &[down]);

    array.csd(&["array", "up"]).expect(0, &[]);
    array.csd(&["get", "before", "back"]).expect(0, &[]);
    assert!(std::fs::read(array.path("back")).unwrap() == bytes);
    // The drive that was down still has the old state, and the others the new one.
    array.csd(&["stat", "during"]).expect(2, &["there is no object"]);
    array.kill(1);
    array.kill(3);
    let words = ["2 of 4 drives are up, 3 are needed", "drive d1", "drive d3"];
    array.csd(&["put", "x.bin", "after"]).expect(1, &words);
    // Half of the drives share one with every majority: that suffices to read.
    array.csd(&["ls"]).expect(4, &["drive d1", "drive d3"]);
    array.kill(0);
    array.csd(&["ls"]).expect(1, &["1 of 4 drives are up, 2 are needed", "drive d0"]);
}

#[test]
fn a_drive_that_dies_during_a_run_is_named() {
    let proxied = ProxiedArray::new(Array::up(2, "1G"));
    proxied.put("x", 32);
    // The run waits for its drive from the third chunk on: it cannot end before the drive does.
    proxied.proxy.cut(RETRIEVE, &[5], Door::Held);
    let run = ProxiedArray::arguments("run count x --equal 0 --on host");
    let running = proxied.array.spawn(&run[..run.len() - 1], Stdio::null());
    wait_until("the run is in the middle", || proxied.proxy.cuts() == 1);
    proxied.array.kill(1);
    proxied.proxy.open();
    let words = ["drive d1 (127.0.0.1:", "% of the run was done", "bring the drive back"];
    finish(running).expect(1, &words);
}

#[test]
fn a_drive_that_dies_in_a_run_on_drives_leaves_a_partial_result() {
    let array = Array::up(2, "1G");
    let edge = |i: usize| format!("{} {}\n", i * 7 % 3000, i * i % 3000);
    let edges: String = (0..20_000).map(edge).collect();
    array.file("edges", edges.as_bytes());
    array.csd(&["put", "edges", "g", "--graph", "--chunk", "4K"]).expect(0, &[]);
    // Ranks never reach tolerance 0, so the run ends only with its drive.
    let run = ["run", "page-rank", "g", "--tolerance", "0", "--iterations", "1000000", "--json"];
    let running = array.spawn(&run, Stdio::null());
    wait_until("the run keeps its vector in the drive's memory", || {
        let (sender, receiver) = std::sync::mpsc::channel();
        on_objects(&array, 1, async move |kv: &Kv| {
            sender.send(kv.exist(&Key::new(&[0x04]).unwrap()).await.unwrap()).unwrap();
        });
        receiver.recv().unwrap()
    });
    array.kill(1);
    let failed = finish(running).expect(1, &[]).json();
    let message = failed["error"]["message"].as_str().unwrap();
    let words = ["drive d1 (nvme+tcp://127.0.0.1:", "part", "missing (", "bring the drive back"];
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
    let partial = &failed["error"]["detail"]["partial"];
    assert!(partial["done_bytes"].as_u64() < partial["bytes"].as_u64(), "{partial}");
}

#[test]
fn a_drive_that_dies_during_a_put_is_named_and_the_name_stays_usable() {
    let array = Array::up(1, "1G");
    let mut running = array.spawn(&["put", "-", "x"], Stdio::piped());
    let mut input = running.child.stdin.take().unwrap();
    input.write_all(&vec![1; 8 << 20]).unwrap();
    wait_until("the put has begun", || array.csd(&["ls", "--all"]).text().contains("staged"));
    array.kill(0);
    // The pipe breaks when the command gives up.
    let _broken = (0..64).try_for_each(|_| input.write_all(&vec![1; 1 << 20]));
    drop(input);
    finish(running).expect(1, &["drive d0 (127.0.0.1:"]);
    let words = ["drive d0 keeps its data in memory and came up empty"];
    array.csd(&["array", "up"]).expect(4, &words);
    array.file("x.bin", b"later");
    array.csd(&["put", "x.bin", "x"]).expect(0, &[]);
}

#[test]
fn a_drive_that_hangs_is_named_in_bounded_time_and_down_kills_it() {
    let array = Array::up(2, "128M");
    let pid = u32::try_from(array.drives()[1]["pid"].as_u64().unwrap()).unwrap();
    signal(pid, Signal::STOP);
    // Bounded by the limit of every command.
    array.csd(&["ls"]).expect(1, &["1 of 2 drives are up, 2 are needed", "drive d1"]);
    array.csd(&["array", "down"]).expect(4, &["drive d1 did not stop, and was killed"]);
}

#[test]
fn a_put_that_is_cut_off_leaves_a_staged_entry_that_the_next_put_cleans_up() {
    for on in ["kv", "block"] {
        let array = Array::up(2, "1G");
        let mut running = array.spawn(&["put", "-", "x", "--on", on], Stdio::piped());
        let mut input = running.child.stdin.take().unwrap();
        input.write_all(&vec![1; 16 << 20]).unwrap();
        wait_until("chunks have arrived", || {
            array.drives().iter().all(|drive| {
                drive["kv_used_bytes"].as_u64().unwrap() > 1 << 20
                    || drive["block_used_bytes"].as_u64().unwrap() > 0
            })
        });
        // Not an interrupt, because tests in the background may have those ignored.
        signal(running.child.id(), Signal::TERM);
        assert_ne!(finish(running).code, 0);
        drop(input);
        assert_eq!(array.csd(&["ls"]).expect(0, &[]).text(), "no objects\n");
        assert!(array.csd(&["ls", "--all"]).expect(0, &[]).text().contains("staged"));
        array.csd(&["get", "x", "back"]).expect(2, &["there is no object"]);
        array.file("small", b"after all");
        array.csd(&["put", "small", "x"]).expect(0, &[]);
        for drive in array.drives() {
            assert!(drive["kv_used_bytes"].as_u64().unwrap() < 10_000, "{on}: {drive}");
            assert_eq!(drive["block_used_bytes"], 0, "{on}: {drive}");
        }
        assert_eq!(array.csd(&["get", "x", "-"]).expect(0, &[]).stdout, b"after all");
    }
}

#[test]
fn a_full_drive_is_named_and_what_was_written_is_given_back() {
    let array = Array::up(2, "128M");
    array.file("large", &vec![1; 320 << 20]);
    array.file("small", &vec![2; 4 << 20]);
    for on in ["kv", "block"] {
        let put = ["put", "large", "x", "--on", on];
        let full = array.csd(&put).expect(1, &["is full"]);
        assert!(full.stderr.contains("drive d0") || full.stderr.contains("drive d1"));
        assert_eq!(array.csd(&["ls", "--all"]).expect(0, &[]).text(), "no objects\n");
        array.csd(&["put", "small", "x", "--on", on]).expect(0, &[]);
        array.csd(&["rm", "x"]).expect(0, &[]);
    }
}

#[test]
fn units_whose_object_is_gone_are_reclaimed_when_a_drive_is_full() {
    let array = Array::up(1, "1G");
    array.file("x.bin", &vec![3; 20 << 20]);
    let blocks = &array.drives()[0]["namespaces"][0];
    let units = blocks["bytes"].as_u64().unwrap() >> 23;
    assert!(units >= 4, "{blocks}");
    on_objects(&array, 0, async move |kv: &Kv| {
        for unit in 0..units {
            let key = [&[0x02][..], &unit.to_be_bytes()].concat();
            // An object identifier without an object, and a catalogue key without an entry.
            let claim = [&[0x99; 12][..], &[0x01; 16]].concat();
            let value = vec![Buffer::from_slice(&claim)];
            kv.store(&Key::new(&key).unwrap(), value, 0).await.unwrap();
        }
        // Its page lists: a drive would compare the next object's blocks with them.
        for number in 0..3u8 {
            let list = [&[0x99; 12][..], &[0, 0, number]].concat();
            let value = vec![Buffer::from_slice(&[1; 100])];
            kv.store(&Key::new(&list).unwrap(), value, 0).await.unwrap();
        }
    });
    let claimed = &array.drives()[0]["block_used_bytes"];
    assert_eq!(claimed.as_u64().unwrap(), units << 23);
    array.csd(&["put", "x.bin", "x", "--on", "block"]).expect(0, &[]);
    assert_eq!(array.drives()[0]["block_used_bytes"], 3 << 23);
    let left = on_objects(&array, 0, async |kv: &Kv| kv.list_all(&[0x99; 12]).await.unwrap());
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_corrupt_entry_names_drive_and_object() {
    let array = Array::up(1, "1G");
    array.file("x.bin", &[1; 100]);
    array.csd(&["put", "x.bin", "x", "--type", "i32"]).expect(0, &[]);
    on_objects(&array, 0, async |kv: &Kv| {
        let key = catalogue::key("x");
        let mut value = kv.retrieve(&key, 4096).await.unwrap().unwrap();
        value[50] ^= 1;
        kv.store(&key, vec![value], 0).await.unwrap();
    });
    for command in [
        &["stat", "x"][..],
        &["get", "x", "back"],
        &["run", "count", "x", "--equal", "1"],
        &["put", "x.bin", "x"],
        &["rm", "x"],
    ] {
        array.csd(command).expect(1, &["d0", "damaged", "no copy can be read"]);
    }
    // The list names it, and goes on.
    array.csd(&["ls"]).expect(4, &["\"x\" on d0 are damaged"]);
}

#[test]
fn a_missing_chunk_and_a_changed_chunk_are_found() {
    let (bytes, _) = small_i32(31, 1_000_000);
    let array = Array::up(1, "1G");
    array.file("x.bin", &bytes);
    array.csd(&["put", "x.bin", "x", "--type", "i32"]).expect(0, &[]);
    let id = array.csd(&["stat", "x", "--json"]).json()["result"]["id"].clone();
    let id: Vec<u8> = (0..12)
        .map(|i| u8::from_str_radix(&id.as_str().unwrap()[2 * i..2 * i + 2], 16).unwrap())
        .collect();
    let key = Key::new(&[&id[..], &[0, 0, 0, 2]].concat()).unwrap();
    on_objects(&array, 0, async move |kv: &Kv| {
        let mut chunk = kv.retrieve(&key, 1 << 20).await.unwrap().unwrap();
        chunk[77] ^= 1;
        kv.store(&key, vec![chunk], 0).await.unwrap();
    });
    // The drive's checksum is right; the digest in the entry is not.
    array
        .csd(&["get", "x", "back"])
        .expect(1, &["drive d0", "chunk 2 is not the one that was stored"]);
    assert!(!array.path("back").exists());
    on_objects(&array, 0, async move |kv: &Kv| {
        kv.delete(&key).await.unwrap();
    });
    array.csd(&["get", "x", "back"]).expect(1, &["drive d0", "chunk 2 is missing"]);
    for on in ["drives", "host", "split"] {
        let count = ["run", "count", "x", "--equal", "7", "--on", on];
        array.csd(&count).expect(1, &["drive d0", "\"x\""]);
    }
}
