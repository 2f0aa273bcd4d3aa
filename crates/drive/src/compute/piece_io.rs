//! [`PieceIo`]: reads and stores the pieces of a task, on this drive and on its peers.
//!
//! Peers get only reads and stores from it. Invariants: a store that has begun runs to its end when
//! its execution is cancelled; the guards of a target are checked directly before its write.

use std::rc::Rc;
use std::sync::Arc;

use csd_initiator::{Block, Controller, Kv};
use csd_nvme::kv::Key;
use csd_nvme::nvm::Extent;
use csd_nvme::opcode;
use csd_nvme::status::Status;
use csd_nvme::vendor::combine::{Guard, Piece, Stored, Task};
use csd_nvme::vendor::location::Location;
use csd_nvme::vendor::{NSID_BLOCK, NSID_KV};
use csd_reactor::Buffer;

use super::{Compute, Failure, values_of};
use crate::log::Level;
use crate::peers::{PeerList, Peers, Unavailable};
use crate::side::Side;

/// The drives of a task.
pub(super) struct PieceIo {
    compute: Compute,
    task: Rc<Task>,
    /// The drive's peers and their list; `None` if the task names none.
    peers: Option<(Arc<Peers>, Arc<PeerList>)>,
}

/// A piece that was read, and the CRC-32C that its record has.
pub(super) type Found = (Buffer, Option<u32>);

impl PieceIo {
    /// Finds the peers of a task in the list.
    pub(super) async fn new(compute: &Compute, task: &Rc<Task>) -> Result<Self, Failure> {
        let (compute, task) = (compute.clone(), Rc::clone(task));
        if task.peers.is_empty() {
            return Ok(Self { compute, task, peers: None });
        }
        let unknown = |reason| Failure::new(Status::PEER_UNKNOWN, reason);
        let Some(peers) = compute.shared.peers.clone() else {
            return Err(unknown("this drive has no file of peers".to_owned()));
        };
        let list = peers.read(&compute.shared.log).await;
        if let Some(nqn) = task.peers.iter().find(|nqn| list.get(nqn).is_none()) {
            return Err(unknown(format!("{nqn} is not in the file of peers")));
        }
        Ok(Self { compute, task, peers: Some((peers, list)) })
    }

    /// Returns the peer that has a piece; `None` for this drive.
    fn peer(&self, piece: &Piece) -> Option<(&Peers, &PeerList, &str)> {
        let (peers, list) = self.peers.as_ref()?;
        let nqn = self.task.peers.get(usize::from(piece.peer).checked_sub(1)?)?;
        (nqn != peers.own()).then_some((&**peers, &**list, &**nqn))
    }

    async fn connect(
        &self,
        (peers, list, nqn): (&Peers, &PeerList, &str),
    ) -> Result<Controller, Unavailable> {
        self.compute.connections.connect(peers, list, nqn).await
    }

    /// Reads a source.
    ///
    /// # Errors
    /// [`Status::SOURCE_MISSING`] if it is missing or has another length; [`Status::PEER_FAILED`];
    /// the status of this drive, or that of a peer whose medium fails.
    pub(super) async fn read(&self, piece: &Piece) -> Result<Found, Failure> {
        let Some(peer) = self.peer(piece) else { return self.read_here(piece).await };
        let controller = self.connect(peer).await.map_err(|why| match &why {
            Unavailable::Unknown(_) => Failure::new(Status::PEER_UNKNOWN, &why),
            Unavailable::Failed(_) => Failure::new(Status::PEER_FAILED, &why),
        })?;
        let failed = |error: csd_initiator::Error| {
            let damaged = [Status::UNRECOVERED_ERROR, Status::UNRECOVERED_READ_ERROR];
            let status = error.status().filter(|status| damaged.contains(status));
            Failure::new(status.unwrap_or(Status::PEER_FAILED), error)
        };
        let bytes = match piece.location {
            Location::Value { nsid, key } => {
                let kv = Kv::open(&controller, nsid).map_err(failed)?;
                let front = kv.front(&whole(&key), piece.bytes).await.map_err(failed)?;
                let (bytes, whole) = front.ok_or_else(|| missing(peer.2, &key))?;
                check_length(piece, whole)?;
                bytes
            }
            Location::Blocks { nsid, slba } => {
                let block = Block::open(&controller, nsid).map_err(failed)?;
                let all = piece.bytes.next_multiple_of(block.block_bytes()) as usize;
                let at = slba.saturating_mul(block.block_bytes().into());
                let mut bytes = block.read(at, all).await.map_err(failed)?;
                bytes.truncate(piece.bytes as usize);
                bytes
            }
        };
        Ok((bytes, None))
    }

    async fn read_here(&self, piece: &Piece) -> Result<Found, Failure> {
        match piece.location {
            Location::Value { nsid, key } => {
                let value = self.compute.kv.open(values_of(nsid)?, whole(&key)).await?;
                let value = value.ok_or_else(|| missing("this drive", &key))?;
                check_length(piece, value.bytes().into())?;
                let bytes = value.read_unchecked(0, piece.bytes).await?;
                Ok((bytes, value.checksum()))
            }
            Location::Blocks { nsid, slba } => {
                self.extent(nsid, slba, piece.bytes)?;
                let buffer = Buffer::with_room(0, piece.bytes as usize, 0);
                Ok((self.compute.block.read(slba, 0, buffer).await?, None))
            }
        }
    }

    /// Returns the whole blocks of this drive that hold a piece.
    fn extent(&self, nsid: u32, slba: u64, bytes: u32) -> Result<Extent, Failure> {
        if nsid != NSID_BLOCK {
            let reason = format!("namespace {nsid} is no block namespace of this drive");
            return Err(Failure::new(Status::INVALID_NAMESPACE, reason));
        }
        let blocks = bytes.div_ceil(self.compute.block.block_bytes());
        let extent = Extent { slba, blocks };
        self.compute.block.length(extent)?;
        Ok(extent)
    }

    /// Stores a target, durably. The log says why a drive did not take it.
    pub(super) async fn store(&self, target: usize, bytes: Buffer) -> Stored {
        let piece = &self.task.targets[target].piece;
        let (stored, drive, why) = match self.peer(piece) {
            None => match self.store_here(target, bytes).await {
                Ok(()) => return Stored::Yes,
                Err(failure) => (Stored::Refused(failure.status), "this drive", failure.reason),
            },
            Some(peer) => match self.store_there(peer, piece, bytes).await {
                Ok(()) => return Stored::Yes,
                Err((stored, why)) => (stored, peer.2, why),
            },
        };
        let fields = [("drive", drive.to_owned()), ("reason", why)];
        self.compute.shared.log.write_rated(Level::Warn, "a piece was not stored", &fields);
        stored
    }

    async fn store_there(
        &self,
        peer: (&Peers, &PeerList, &str),
        piece: &Piece,
        mut bytes: Buffer,
    ) -> Result<(), (Stored, String)> {
        let lost = |why: Unavailable| (Stored::Lost, why.to_string());
        let controller = self.connect(peer).await.map_err(lost)?;
        let refused = |error: csd_initiator::Error| {
            let stored = error.status().map_or(Stored::Lost, Stored::Refused);
            (stored, error.to_string())
        };
        match piece.location {
            Location::Value { nsid, key } => {
                let kv = Kv::open(&controller, nsid).map_err(refused)?;
                kv.store(&whole(&key), vec![bytes], 0).await.map_err(refused)?;
                // The other namespace of values never has a volatile cache.
                if nsid == NSID_KV { kv.flush().await.map_err(refused) } else { Ok(()) }
            }
            Location::Blocks { nsid, slba } => {
                let block = Block::open(&controller, nsid).map_err(refused)?;
                pad(&mut bytes, block.block_bytes());
                let at = slba.saturating_mul(block.block_bytes().into());
                block.write(at, vec![bytes], true).await.map_err(refused)
            }
        }
    }

    async fn store_here(&self, target: usize, mut bytes: Buffer) -> Result<(), Failure> {
        let piece = &self.task.targets[target].piece;
        let (compute, shared) = (&self.compute, &self.compute.shared);
        match piece.location {
            Location::Value { nsid, key } => {
                let number = values_of(nsid)?;
                shared.may_change(nsid, opcode::Kv::STORE.0)?;
                self.check_guards(target).await?;
                compute.kv.store(number, whole(&key), vec![bytes], 0).await?;
                Ok(compute.kv.flush_namespace(number).await?)
            }
            Location::Blocks { nsid, slba } => {
                let extent = self.extent(nsid, slba, piece.bytes)?;
                shared.may_change(nsid, opcode::Nvm::WRITE.0)?;
                let _change = shared.inside_only.begin(Side::Outside)?;
                pad(&mut bytes, compute.block.block_bytes());
                self.check_guards(target).await?;
                Ok(compute.block.write(extent, vec![bytes], true).await?)
            }
        }
    }

    /// Checks the guards of a target.
    ///
    /// # Errors
    /// [`Status::COMPARE_FAILURE`] if one does not hold; the status of this drive.
    async fn check_guards(&self, target: usize) -> Result<(), Failure> {
        for guard in self.task.guards_of(target) {
            if !holds(&self.compute, guard).await? {
                let reason = format!("a guard of target {target} does not hold: {:?}", guard.key);
                return Err(Failure::new(Status::COMPARE_FAILURE, reason));
            }
        }
        Ok(())
    }
}

/// Returns true if the value of a guard is there.
async fn holds(compute: &Compute, guard: &Guard) -> Result<bool, Failure> {
    let value = compute.kv.open(values_of(guard.nsid)?, guard.key).await?;
    let Some(value) = value.filter(|value| value.bytes() as usize == guard.value.len()) else {
        return Ok(false);
    };
    let bytes = value.read_unchecked(0, value.bytes()).await?;
    Ok(bytes[..] == guard.value[..])
}

fn whole(key: &[u8; 16]) -> Key {
    Key::new(key).expect("sixteen bytes are a key")
}

/// Fills the last block with zeros.
fn pad(bytes: &mut Buffer, block_bytes: u32) {
    let padding = bytes.len().next_multiple_of(block_bytes as usize) - bytes.len();
    bytes.append(padding).fill(0);
}

fn missing(drive: &str, key: &[u8; 16]) -> Failure {
    let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    Failure::new(Status::SOURCE_MISSING, format!("{drive} has no value {key}"))
}

fn check_length(piece: &Piece, found: u64) -> Result<(), Failure> {
    if found == u64::from(piece.bytes) {
        return Ok(());
    }
    let reason = format!("a piece has {found} bytes, and {} are named", piece.bytes);
    Err(Failure::new(Status::SOURCE_MISSING, reason))
}
