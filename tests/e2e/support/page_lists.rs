//! Page lists, which hold the checksums of pieces' pages, as drives have them.

use std::collections::BTreeSet;

use csd_initiator::Kv;
use csd_nvme::kv::Key;
use csd_nvme::vendor::pages::{KEY_BYTES, List};

use crate::support::direct::on_objects;
use crate::support::harness::Array;

/// Returns the page lists of a drive.
pub(crate) fn lists(array: &Array, drive: usize) -> Vec<List> {
    on_objects(array, drive, async |kv: &Kv| {
        let mut lists = Vec::new();
        let is_list = |key: &&Key| key.as_bytes().len() == KEY_BYTES;
        for key in kv.list_all(&[]).await.unwrap().iter().filter(is_list) {
            let list = kv.retrieve(key, 1 << 17).await.unwrap().unwrap();
            lists.push(List::parse(&list).unwrap());
        }
        lists
    })
}

/// Returns the page lists of all drives.
pub(crate) fn all_lists(array: &Array) -> Vec<List> {
    (0..array.drives().len()).flat_map(|drive| lists(array, drive)).collect()
}

/// Returns the pieces of lists: kind, start and checksums.
pub(crate) fn listed_pieces(lists: &[List]) -> BTreeSet<(u8, u64, Vec<u32>)> {
    let of_list = |list: &List| {
        let piece = |number| {
            let (piece, sums) = list.piece(number).unwrap();
            (list.kind.0, piece.start, sums.to_vec())
        };
        (0..list.pieces.len()).map(piece).collect::<Vec<_>>()
    };
    lists.iter().flat_map(of_list).collect()
}
