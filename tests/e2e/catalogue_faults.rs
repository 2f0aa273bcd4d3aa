//! Drives that have forgotten names, and chunks that are not those that were put.

use csd_initiator::Kv;
use csd_nvme::kv::Key;
use csd_reactor::Buffer;
use csd_store::catalogue;

use crate::support::direct::on_objects;
use crate::support::harness::Array;

const LIVES: &[u8] = b"\x07lives";
const ROSTER: &[u8] = b"\x07roster";

/// Deletes a drive's record of its lives, and its entry of `x`: an emptied drive has neither.
fn forget(array: &Array, drive: usize) {
    on_objects(array, drive, async |kv: &Kv| {
        for key in [Key::new(LIVES).unwrap(), catalogue::key("x")] {
            assert!(kv.exist(&key).await.unwrap());
            kv.delete(&key).await.unwrap();
        }
    });
}

#[test]
fn a_drive_that_has_forgotten_names_does_not_vote_until_it_is_rebuilt() {
    let array = Array::up_on_files(3, "128M");
    array.file("x.bin", b"seven");
    array.csd(&["put", "x.bin", "x"]).expect(0, &[]);
    forget(&array, 1);
    let words = ["drive d1 (127.0.0.1:", "does not vote", "emptied", "`csd array rebuild`"];
    let status = array.csd(&["array", "status"]).expect(4, &words).text();
    assert!(status.contains("d1     no vote"), "{status}");
    let rebuilt = array.csd(&["array", "rebuild", "--json"]).expect(0, &[]).json();
    let expected = serde_json::json!([{ "name": "d1", "names": 1, "stored": 1 }]);
    assert_eq!(rebuilt["result"]["drives"], expected);
    let again = array.csd(&["array", "rebuild"]).expect(0, &[]).text();
    assert_eq!(again, "every drive that is up votes\n");
    array.csd(&["array", "rebuild", "d9"]).expect(2, &["no drive \"d9\""]);
    forget(&array, 1);
    array.kill(2);
    // What d1 says is no answer.
    let words = ["1 of 3 drives are up and vote, 2 are needed", "does not vote", "drive d2"];
    array.csd(&["stat", "x"]).expect(1, &words);
    array.csd(&["array", "rebuild"]).expect(1, &["1 of 3 drives are up and vote, 2 are needed"]);
    array.csd(&["array", "up"]).expect(0, &[]);
    array.kill(0);
    array.csd(&["stat", "x"]).expect(4, &["drive d0"]);
    // A drive that votes is no witness of itself.
    let words = "drive d1 is rebuilt from the other drives: 1 of 2 are up and vote, 2 are needed: ";
    let failed = array.csd(&["array", "rebuild", "d1"]).expect(1, &[words, "drive d0"]);
    assert!(!failed.stderr.contains("drive d1 does not vote"), "{}", failed.stderr);
}

#[test]
fn a_damaged_copy_of_an_entry_fails_no_command_and_is_mended() {
    let array = Array::up(3, "128M");
    array.file("x.bin", b"seven");
    array.csd(&["put", "x.bin", "x"]).expect(0, &[]);
    on_objects(&array, 1, async |kv: &Kv| {
        kv.store(&catalogue::key("x"), vec![Buffer::zeroed(40)], 0).await.unwrap();
    });
    let words = ["drive d1: its copy of name \"x\" is damaged"];
    assert_eq!(array.csd(&["get", "x", "-"]).expect(4, &words).stdout, b"seven");
    assert!(array.csd(&["ls"]).expect(4, &words).text().contains('x'));
    let rebuilt = array.csd(&["array", "rebuild", "d1", "--json"]).expect(0, &[]).json();
    assert_eq!(rebuilt["result"]["drives"][0]["stored"], 1);
    on_objects(&array, 1, async |kv: &Kv| {
        let value = kv.retrieve(&catalogue::key("x"), 4096).await.unwrap().unwrap();
        assert!(catalogue::Entry::parse(&value).is_ok());
    });
}

#[test]
fn a_sound_chunk_that_is_not_the_one_that_was_put_is_refused() {
    let array = Array::up(2, "128M");
    array.file("x.bin", &[7; 1 << 20]);
    array.csd(&["put", "x.bin", "x", "--type", "i32", "--chunk", "64K"]).expect(0, &[]);
    on_objects(&array, 1, async |kv: &Kv| {
        let keys = kv.list_all(&[]).await.unwrap();
        let is_chunk = |key: &&Key| key.as_bytes().len() == 16 && key.as_bytes()[0] >= 0x80;
        let chunk = keys.iter().find(is_chunk).unwrap();
        kv.store(chunk, vec![Buffer::from_slice(&[9; 64 << 10])], 0).await.unwrap();
    });
    let words = ["drive d1", "is not the one that was stored"];
    array.csd(&["get", "x", "-"]).expect(1, &words);
    array.csd(&["run", "summarize", "x", "--on", "host"]).expect(1, &words);
}

/// The drive compares the version of what it keeps, and would refuse every sound list of drives.
#[test]
fn a_list_of_drives_that_is_damaged_with_a_high_version_is_mended() {
    let array = Array::up(3, "128M");
    array.file("x.bin", b"seven");
    array.csd(&["put", "x.bin", "x"]).expect(0, &[]);
    let mut damage = vec![0x5A; 64];
    damage[8..16].copy_from_slice(&1_000_000_u64.to_le_bytes());
    let stored = damage.clone();
    on_objects(&array, 1, async move |kv: &Kv| {
        kv.store(&Key::new(ROSTER).unwrap(), vec![Buffer::from_slice(&stored)], 0).await.unwrap();
    });
    array.csd(&["put", "x.bin", "y"]).expect(0, &[]);
    let found = on_objects(&array, 1, async |kv: &Kv| {
        kv.retrieve(&Key::new(ROSTER).unwrap(), 4096).await.unwrap().unwrap().to_vec()
    });
    assert!(found != damage, "the list was not mended");
    for name in ["x", "y"] {
        assert_eq!(array.csd(&["get", name, "-"]).expect(0, &[]).stdout, b"seven");
    }
    array.csd(&["array", "status"]).expect(0, &[]);
}
