//! Placement of an array's objects: the drives that hold them, and that nothing else is there.

use std::collections::BTreeSet;

use csd_initiator::Kv;
use csd_store::catalogue::{self, Entry};
use serde_json::Value;

use crate::support::direct::on_objects;
use crate::support::harness::Array;
use crate::support::json_page::documented;
use crate::support::pieces::keys;

/// Rebalances the array; returns the result.
#[track_caller]
pub(crate) fn rebalanced(array: &Array, more: &[&str], code: i32) -> Value {
    documented(array, "array rebalance", more, code)
}

/// Returns what `csd stat` says of an object.
pub(crate) fn stat(array: &Array, name: &str) -> Value {
    array.csd(&["stat", name, "--json"]).json()["result"].clone()
}

/// Returns the names of the drives that hold chunks of an object.
pub(crate) fn holders(stat: &Value) -> BTreeSet<String> {
    let drives = stat["drives"].as_array().unwrap().iter();
    let held = drives.filter(|drive| drive["chunks"] != 0);
    held.map(|drive| drive["name"].as_str().unwrap().to_owned()).collect()
}

/// Returns the entry of a name as a drive has it.
fn entry(array: &Array, drive: usize, name: &str) -> Entry {
    let name = name.to_owned();
    on_objects(array, drive, async move |kv: &Kv| {
        let value = kv.retrieve(&catalogue::key(&name), 4096).await.unwrap().unwrap();
        Entry::parse(&value).unwrap()
    })
}

/// Asserts that the drives hold pieces of these objects only.
#[track_caller]
pub(crate) fn assert_nothing_left(array: &Array, drives: &[usize], names: &[&str]) {
    array.csd(&["array", "reclaim"]).expect(0, &[]);
    let entries = names.iter().map(|name| entry(array, drives[0], name));
    let known: BTreeSet<[u8; 12]> = entries.flat_map(|entry| entry.ids()).map(|id| id.0).collect();
    for drive in drives {
        for key in keys(array, *drive) {
            assert!(known.contains(&key[..12]), "drive {drive} holds {key:x?} of no object");
        }
    }
}
