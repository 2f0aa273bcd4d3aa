//! Reclaim: deletes remains of puts that lost their names or were interrupted, once no entry refers
//! to them.
//!
//! Usually a put that loses deletes its data; a put that is killed first leaves chunks, units of
//! the block namespace and claims. Safe while other hosts write: a put's staged entry is in the
//! catalogue before its first chunk is on a drive, and a reclaim lists the chunks on the drives
//! before it reads the catalogue. So it finds the entry of every running put whose data it sees.
//!
//! Does not touch a staged entry, which may belong to a running put: `csd rm` and the next put of
//! its name do, and [`remove_staged`](super::remove_staged) for who knows that the put has ended.

use std::collections::BTreeSet;

use csd_nvme::kv::Key;
use csd_nvme::vendor::execute::chunk_key;
use csd_nvme::vendor::pages::list_key;
use csd_reactor::sleep;

use super::{Error, list, remove};
use crate::array::{Array, Drive};
use crate::catalogue::{self, ObjectId};
use crate::extent;
use crate::extent::GRACE;

/// Number of things deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Puts whose chunks or units were left.
    pub puts: usize,
    /// Claims of epochs that have passed.
    pub claims: usize,
    /// Puts whose data is kept, because it may belong to names of which too few copies are sound.
    pub kept: usize,
}

/// Deletes unreferenced data on the drives that are up.
///
/// # Errors
/// The error that prevented a majority from answering, or a failed command.
pub async fn reclaim(array: &Array) -> Result<Reclaimed, Error> {
    let mut left = BTreeSet::new();
    for drive in array.drives() {
        left.extend(objects_on(drive).await?);
    }
    let listed = list(array).await?;
    for entry in listed.sealed.iter().chain(&listed.staged) {
        for id in entry.ids() {
            left.remove(&id);
        }
    }
    if listed.damaged > 0 {
        let claims = catalogue::release_passed(array).await?;
        return Ok(Reclaimed { puts: 0, claims, kept: left.len() });
    }
    if !left.is_empty() {
        // A put that has just lost its name may still write.
        sleep(GRACE).await;
    }
    for &object in &left {
        remove::sweep(array, object).await?;
    }
    Ok(Reclaimed { puts: left.len(), claims: catalogue::release_passed(array).await?, kept: 0 })
}

/// Returns the objects of which a drive has chunks, page lists or units.
pub(crate) async fn objects_on(drive: &Drive) -> Result<BTreeSet<ObjectId>, Error> {
    let mut least = [0; 12];
    least[0] = 0x80; // the top bit of an object's id
    let mut objects: BTreeSet<ObjectId> = extent::owners(drive).await?.into_iter().collect();
    for first in [list_key(&least, 0), chunk_key(&least, 0)] {
        let keys = catalogue::keys_with_prefix(drive, &[], first.as_bytes()).await?;
        let of_key = |key: &Key| key.as_bytes().first_chunk().map(|id| ObjectId(*id));
        objects.extend(keys.iter().filter_map(of_key));
    }
    Ok(objects)
}
