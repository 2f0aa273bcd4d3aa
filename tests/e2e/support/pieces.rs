//! Pieces of objects: chunks and parity, their keys on drives, and their bytes.

use std::collections::{BTreeMap, BTreeSet};

use csd_initiator::Kv;
use csd_kernels::erasure::{Code, scalar};
use csd_nvme::kv::Key;
use serde_json::Value;

use crate::support::direct::on_objects;
use crate::support::harness::{Array, Done};

/// Size of the chunks.
pub(crate) const CHUNK: usize = 4096;

/// Puts an object of these bytes in chunks of [`CHUNK`].
pub(crate) fn put(array: &Array, name: &str, content: &[u8], more: &[&str]) {
    array.file("x", content);
    array.csd(&[&["put", "x", name, "--chunk", "4K"], more].concat()).expect(0, &[]);
}

/// Keys of chunks and parity on a drive.
pub(crate) fn keys(array: &Array, drive: usize) -> BTreeSet<Vec<u8>> {
    on_objects(array, drive, async |kv: &Kv| {
        let keys = kv.list_all(&[]).await.unwrap();
        let is_piece = |key: &&Key| key.as_bytes().len() == 16 && key.as_bytes()[0] >= 0x80;
        keys.iter().filter(is_piece).map(|key| key.as_bytes().to_vec()).collect()
    })
}

/// Returns the pieces of an object, as `csd stat --pieces` lists them.
pub(crate) fn pieces(array: &Array, name: &str) -> Vec<Value> {
    let stat = array.csd(&["stat", name, "--pieces", "--json"]).json();
    stat["result"]["pieces"].as_array().unwrap().clone()
}

pub(crate) fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// Gets an object, with these options.
pub(crate) fn get(array: &Array, name: &str, more: &[&str]) -> Done {
    array.csd(&[&["get", name, "-"], more].concat())
}

/// Checks every piece of an object by its digest and the scalar code; returns the parity pieces of
/// each drive.
pub(crate) fn check(
    array: &Array,
    name: &str,
    data: usize,
    parity: usize,
) -> BTreeMap<String, usize> {
    let code = Code::new(data, parity).unwrap();
    let mut stripes: BTreeMap<usize, BTreeMap<usize, Vec<u8>>> = BTreeMap::new();
    let mut drives: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    let mut held = BTreeMap::new();
    for of in pieces(array, name) {
        let (stripe, piece) = (number(&of["stripe"]), number(&of["piece"]));
        let raw =
            get(array, name, &["--piece", &format!("{stripe}:{piece}")]).expect(0, &[]).stdout;
        assert_eq!(raw.len(), number(&of["bytes"]));
        assert_eq!(u64::from(crc32c::crc32c(&raw)), of["crc32c"].as_u64().unwrap());
        stripes.entry(stripe).or_default().insert(piece, raw);
        let drive = of["drive"].as_str().unwrap().to_owned();
        assert!(drives.entry(stripe).or_default().insert(drive.clone()), "two on {drive}");
        *held.entry(drive).or_default() += usize::from(piece >= data);
    }
    for (stripe, pieces) in stripes {
        let of_data: Vec<&[u8]> =
            (0..data).map(|piece| pieces.get(&piece).map_or(&[][..], |piece| piece)).collect();
        for index in 0..parity {
            let expected = scalar::parity(&code, index, &of_data);
            assert_eq!(pieces[&(data + index)], expected, "stripe {stripe}");
        }
    }
    held
}
