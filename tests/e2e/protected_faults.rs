//! Faults of protected objects other than lost drives: full media, damaged entries, another array's
//! medium, codes that do not exist.

use csd_initiator::Kv;
use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::Buffer;
use csd_store::catalogue;
use serde_json::{Value, json};

use crate::support::data::bytes;
use crate::support::direct::on_objects;
use crate::support::harness::Array;
use crate::support::pieces::{CHUNK, get, keys};

/// Fills a drive with values under the names of chunks that belong to no object.
fn fill(array: &Array, drive: usize) {
    on_objects(array, drive, async |kv: &Kv| {
        let mut size = 1 << 18; // the largest value of a drive of this size
        for number in 0u32.. {
            let key = [&[0xFE; 12][..], &number.to_be_bytes()].concat();
            let value = vec![Buffer::zeroed(size)];
            match kv.store(&Key::new(&key).unwrap(), value, 0).await {
                Ok(()) => {}
                Err(error) => {
                    assert_eq!(error.status(), Some(Status::CAPACITY_EXCEEDED), "{error}");
                    if size <= CHUNK {
                        return;
                    }
                    size /= 4;
                }
            }
        }
    });
}

#[test]
fn codes_that_do_not_exist_or_need_more_drives_are_refused() {
    let array = Array::up(3, "128M");
    array.file("x", b"seven");
    array.csd(&["put", "x"]).expect(0, &[]);
    for (code, words) in [
        ("rs:0+1", "N data pieces (1 to 32)"),
        ("rs:1+0", "K parity pieces (1 to 16)"),
        ("rs:33+1", "rs:N+K"),
        ("rs:1+17", "rs:N+K"),
        ("rs:2", "rs:N+K"),
        ("rs:-1+2", "rs:N+K"),
        ("rs:2+1 ", "rs:N+K"),
        ("4+2", "rs:N+K"),
        ("", "rs:N+K"),
        ("rs:2+2", "rs:2+2 needs 4 drives, and the array has 3"),
        ("rs:32+16", "needs 48 drives"),
    ] {
        array.csd(&["put", "x", "y", "--protect", code]).expect(2, &[words]);
        array.csd(&["protect", "x", code]).expect(2, &[words]);
    }
    array.csd(&["protect", "none", "rs:2+1"]).expect(2, &["no object \"none\""]);
    array.csd(&["stat", "y"]).expect(2, &["no object"]);
    assert_eq!(array.csd(&["stat", "x", "--json"]).json()["result"]["protection"], Value::Null);
}

#[test]
fn full_drives_end_put_and_protect_with_nothing_left_and_are_missing_in_a_repair() {
    let array = Array::up(3, "128M");
    let content = bytes(1, 40 * CHUNK);
    array.file("x", &content);
    let chunk = ["--chunk", "4K"];
    let protected = ["put", "x", "y", "--chunk", "4K", "--protect", "rs:2+1"];
    array.csd(&[&["put", "x"][..], &chunk].concat()).expect(0, &[]);
    fill(&array, 1);
    let before: Vec<_> = (0..3).map(|drive| keys(&array, drive)).collect();
    for _ in 0..2 {
        array.csd(&["protect", "x", "rs:2+1"]).expect(1, &["drive d1 is full"]);
        array.csd(&protected).expect(1, &["drive d1 is full"]);
        let after: Vec<_> = (0..3).map(|drive| keys(&array, drive)).collect();
        assert!(after == before, "pieces were left");
    }
    let stat = array.csd(&["stat", "x", "--json"]).expect(0, &[]).json();
    assert_eq!(stat["result"]["protection"], Value::Null);
    assert!(get(&array, "x", &[]).expect(0, &[]).stdout == content);
    assert!(!array.csd(&["ls", "--all", "--json"]).expect(0, &[]).text().contains("\"y\""));
    // The values that fill the drive belong to no object.
    array.csd(&["array", "reclaim"]).expect(0, &[]);
    array.csd(&["protect", "x", "rs:2+1"]).expect(0, &[]);
    array.csd(&protected).expect(0, &[]);

    array.kill(1);
    array.csd(&["array", "up"]).expect(4, &["came up empty"]);
    fill(&array, 1);
    let repair = || array.csd(&["repair", "--json"]);
    let found = repair().expect(4, &[]).json()["result"].clone();
    let missing = found["missing"].as_array().unwrap();
    for name in ["x", "y"] {
        let of = missing.iter().find(|missing| missing["object"] == name).expect("it is missing");
        assert_eq!(of["drive"], "d1");
        assert!(of["why"].as_str().unwrap().contains("full"), "{found}");
        assert!(get(&array, name, &[]).expect(4, &["drive d1"]).stdout == content, "{name}");
    }
    array.csd(&["array", "reclaim"]).expect(0, &[]);
    let found = repair().expect(0, &[]).json()["result"].clone();
    assert_eq!(found["missing"], json!([]));
    array.kill(2);
    assert!(get(&array, "x", &[]).expect(4, &["drive d2"]).stdout == content);
}

#[test]
fn a_damaged_copy_of_the_entry_costs_no_protected_object() {
    let array = Array::up(4, "128M");
    let content = bytes(2, 30 * CHUNK);
    array.file("x", &content);
    array.csd(&["put", "x", "--chunk", "4K", "--protect", "rs:2+2"]).expect(0, &[]);
    // A bit of the sums that the entry has of its chunks and parity, and the number of a member.
    for (drive, at, behind) in [(0, 12, true), (3, 112, false)] {
        on_objects(&array, drive, async move |kv: &Kv| {
            let mut value = kv.retrieve(&catalogue::key("x"), 8192).await.unwrap().unwrap();
            let at = if behind { value.len() - at } else { at };
            value[at] ^= 1;
            kv.store(&catalogue::key("x"), vec![value], 0).await.unwrap();
        });
        assert!(get(&array, "x", &[]).expect(4, &["damaged"]).stdout == content);
    }
    array.csd(&["repair"]).expect(0, &[]);
    array.csd(&["scrub", "x"]).expect(0, &[]);
    // The repair has written the entry again, because too few drives held a sound copy.
    array.kill(1);
    array.kill(2);
    assert!(get(&array, "x", &[]).expect(4, &["drive d1", "drive d2"]).stdout == content);
}

#[test]
fn the_medium_of_another_array_is_neither_read_nor_written() {
    let (array, other) = (Array::up_on_files(4, "128M"), Array::up_on_files(4, "128M"));
    let content = bytes(3, 30 * CHUNK);
    for (of, content) in [(&array, &content), (&other, &bytes(4, 30 * CHUNK))] {
        of.file("x", content);
        of.csd(&["put", "x", "--chunk", "4K", "--protect", "rs:2+2"]).expect(0, &[]);
    }
    // The other array's drive serves in the place of d1.
    let url = |of: &Array| of.url(1);
    let file = std::fs::read_to_string(array.path("csd-array.toml")).unwrap();
    let swapped = file.replace(&url(&array), &url(&other));
    assert_ne!(file, swapped);
    array.file("swapped.toml", swapped.as_bytes());
    let theirs = keys(&other, 1);
    let csd = |line: &str| {
        let line: Vec<&str> = line.split(' ').chain(["--array", "swapped.toml"]).collect();
        array.csd(&line)
    };
    let words = ["drive d1", "belongs to another array"];
    assert!(csd("get x -").expect(4, &["drive d1"]).stdout == content);
    csd("ls").expect(4, &words);
    let found = csd("repair --json").expect(4, &[]).json()["result"].clone();
    assert_eq!(found["missing"][0]["drive"], "d1", "{found}");
    csd("array rebuild").expect(1, &["holds data of another array"]);
    csd("put x new --protect rs:2+1").expect(4, &words);
    csd("rm new").expect(4, &words);
    array.kill(2);
    assert!(csd("get x -").expect(4, &["drive d2"]).stdout == content);
    assert_eq!(keys(&other, 1), theirs, "it was changed");
    other.csd(&["get", "x", "-"]).expect(0, &[]);
    // Its medium under the name of d1's is not even started.
    array.kill(1);
    other.kill(1);
    let medium = |of: &Array| of.path("csd-array/d1.media");
    let own = array.path("own.media");
    std::fs::rename(medium(&array), &own).unwrap();
    std::fs::copy(medium(&other), medium(&array)).unwrap();
    let up = array.csd(&["array", "up"]);
    let up = up.expect(4, &["is not the medium that this array was made with"]);
    assert!(up.text().contains("d1  not started"), "{}", up.text());
    std::fs::rename(own, medium(&array)).unwrap();
}
