//! Deleting objects of any length, and pieces.
//!
//! Invariants: pieces are deleted only after the manifest that names them was replaced or deleted;
//! the first piece goes last, so that what an interruption leaves can be found; a manifest that
//! names pieces which do not exist takes no longer than those that do.

use csd_nvme::kv::Key;

use super::manifest::Manifest;
use super::put::manifest_in;
use crate::ordered::Ordered;
use crate::{Error, Session};

/// Pieces that are absent one after another before the rest counts as absent. An interruption
/// leaves gaps as long as the number of pieces in flight.
pub(super) const ABSENT_MAX: usize = 64;

/// Outcome of deleting some pieces.
enum Removed {
    /// None is left.
    All,
    /// None is left before pieces that do not exist.
    ToGap,
    /// So many may still exist.
    Failed(u32),
}

impl Session {
    /// Deletes `key`, and its pieces if it is a long object. Returns false if it did not exist.
    ///
    /// # Errors
    /// Any of a command's.
    pub async fn delete_object(&self, key: &Key) -> Result<bool, Error> {
        let Some((front, whole)) = self.old(key).await? else { return Ok(false) };
        self.delete(key).await?;
        self.remove_old(manifest_in(&front, whole)).await;
        Ok(true)
    }

    pub(super) async fn remove_old(&self, manifest: Option<Manifest>) -> u32 {
        match manifest {
            Some(manifest) => self.remove_pieces(&manifest).await,
            None => 0,
        }
    }

    /// Deletes pieces; returns the number of those that may still exist. Stops at the first error,
    /// because the others would meet it as well.
    pub(super) async fn remove_pieces(&self, manifest: &Manifest) -> u32 {
        let others = 1..manifest.pieces();
        let mut removed = self.remove_run(manifest, others.clone().rev()).await;
        if matches!(removed, Removed::ToGap) {
            removed = self.remove_run(manifest, others).await;
        }
        if let Removed::Failed(left) = removed {
            return left + 1;
        }
        match self.remove_run(manifest, 0..1).await {
            Removed::Failed(_) => 1,
            Removed::All | Removed::ToGap => 0,
        }
    }

    /// Deletes pieces in this order, up to [`ABSENT_MAX`] that do not exist.
    async fn remove_run(
        &self,
        manifest: &Manifest,
        mut numbers: impl ExactSizeIterator<Item = u32>,
    ) -> Removed {
        let (mut deletes, mut absent) = (Ordered::new(), 0);
        loop {
            while deletes.len() < self.settings().depth.max(1) && absent < ABSENT_MAX {
                let Some(number) = numbers.next() else { break };
                let key = manifest.key(number);
                deletes.push(async move {
                    // A drive may say of a key that does not exist that it was deleted.
                    let exists = self.exists(&key).await?;
                    if exists {
                        self.delete(&key).await?;
                    }
                    Ok::<bool, Error>(exists)
                });
            }
            match deletes.next().await {
                Some(Ok(exists)) => absent = if exists { 0 } else { absent + 1 },
                Some(Err(_)) => {
                    let mut left = 1 + numbers.len();
                    while let Some(done) = deletes.next().await {
                        left += usize::from(done.is_err());
                    }
                    return Removed::Failed(u32::try_from(left).unwrap_or(u32::MAX));
                }
                None if numbers.len() == 0 => return Removed::All,
                None if absent >= ABSENT_MAX => return Removed::ToGap,
                None => {}
            }
        }
    }
}
