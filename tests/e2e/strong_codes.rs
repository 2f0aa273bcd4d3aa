//! Codes that survive the loss of most drives, and the names of their objects.

use csd_initiator::Kv;
use csd_nvme::kv::Key;

use crate::support::data::bytes;
use crate::support::direct::on_objects;
use crate::support::harness::{Array, Done};
use crate::support::pieces::{CHUNK, check, get, keys};

fn put(array: &Array, name: &str, more: &[&str]) -> Done {
    array.csd(&[&["put", "x", name, "--chunk", "4K"], more].concat())
}

#[test]
fn objects_are_read_from_as_many_drives_as_a_stripe_has_data() {
    for (drives, data, parity) in [(5, 2, 3), (6, 2, 4), (4, 2, 2), (3, 1, 2)] {
        let array = Array::up(drives, "256M");
        let content = bytes(drives as u64, 23 * CHUNK + 1);
        array.file("x", &content);
        let code = format!("rs:{data}+{parity}");
        put(&array, "x", &["--protect", &code]).expect(0, &[]);
        put(&array, "later", &[]).expect(0, &[]);
        array.csd(&["protect", "later", &code]).expect(0, &[]);
        put(&array, "blocks", &["--on", "block", "--protect", &code]).expect(0, &[]);
        check(&array, "x", data, parity);
        (0..parity).for_each(|drive| array.kill(drive));
        for name in ["x", "later", "blocks"] {
            let got = get(&array, name, &[]).expect(4, &["drive d0"]);
            assert!(got.stdout == content, "{code}: {name}");
        }
        array.csd(&["run", "verify", "x"]).expect(4, &["drive d0"]);
        // One drive less is too few.
        array.kill(parity);
        get(&array, "x", &[]).expect(1, &[]);
    }
}

#[test]
fn changes_of_such_a_name_need_more_drives_than_a_majority() {
    let array = Array::up_on_files(5, "128M");
    array.file("x", &bytes(1, 9 * CHUNK));
    put(&array, "strong", &["--protect", "rs:2+3"]).expect(0, &[]);
    put(&array, "gone", &["--protect", "rs:2+3"]).expect(0, &[]);
    array.kill(4);
    // Four of five suffice, and the fifth holds an older entry from now on.
    array.csd(&["rm", "gone"]).expect(4, &["drive d4"]);
    array.kill(3);
    let words = ["survives the loss of 3 drives", "needs 4 of 5 drives, and 3 are up and vote"];
    put(&array, "new", &["--protect", "rs:2+3"]).expect(1, &words);
    array.csd(&["rm", "strong"]).expect(1, &words);
    // The name of what was removed stays as strict, other names are not.
    put(&array, "gone", &[]).expect(1, &words);
    put(&array, "plain", &[]).expect(4, &["drive d3"]);
    array.csd(&["rm", "plain"]).expect(4, &[]);
    assert_eq!(get(&array, "strong", &[]).expect(4, &[]).stdout, bytes(1, 9 * CHUNK));
    array.csd(&["array", "up"]).expect(0, &[]);
    (0..3).for_each(|drive| array.kill(drive));
    // The two that are left are one that knows of the removal, and one that does not.
    get(&array, "gone", &[]).expect(2, &["there is no object \"gone\""]);
    assert_eq!(get(&array, "strong", &[]).expect(4, &[]).stdout, bytes(1, 9 * CHUNK));
    let words = ["2 of 5 drives are up, 3 are needed"];
    get(&array, "plain", &[]).expect(1, &words);
    array.csd(&["ls"]).expect(1, &words);
}

#[test]
fn a_name_stays_strict_when_it_is_put_again() {
    let array = Array::up_on_files(5, "128M");
    array.file("x", &bytes(2, CHUNK));
    put(&array, "name", &["--protect", "rs:2+3"]).expect(0, &[]);
    array.csd(&["rm", "name"]).expect(0, &[]);
    array.kill(4);
    put(&array, "name", &["--layout", "whole"]).expect(4, &[]);
    array.csd(&["array", "up"]).expect(0, &[]);
    (0..3).for_each(|drive| array.kill(drive));
    // The drive that was away knows only the removal.
    let stat = array.csd(&["stat", "name", "--json"]).expect(4, &[]).json();
    assert_eq!(stat["result"]["bytes"], CHUNK);
}

#[test]
fn a_repair_makes_pieces_although_too_few_drives_are_up_to_change_the_name() {
    let array = Array::up(5, "256M");
    let content = bytes(3, 20 * CHUNK);
    array.file("x", &content);
    put(&array, "x", &["--protect", "rs:2+3"]).expect(0, &[]);
    let held = keys(&array, 0);
    let lost = held.clone();
    on_objects(&array, 0, async move |kv: &Kv| {
        for key in lost {
            kv.delete(&Key::new(&key).unwrap()).await.unwrap();
        }
    });
    array.kill(3);
    array.kill(4);
    let found = array.csd(&["repair", "x", "--json"]).expect(4, &[]).json()["result"].clone();
    assert_eq!(found["rebuilt"], held.len());
    let missing = found["missing"].as_array().unwrap();
    let drives: Vec<_> = missing.iter().map(|missing| &missing["drive"]).collect();
    assert_eq!(drives, ["d3", "d4"], "{found}");
    assert_eq!(keys(&array, 0), held);
}
