//! [`Transfers`]: data that a host is granted to send (R2T), and the commands that wait for it.
//!
//! Invariant: a tag belongs to one connection, and may be granted again as soon as its data is
//! complete.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use csd_nvme::status::Status;
use csd_reactor::{Buffer, Notify, worked};

use crate::limits::PIECE_BYTES_MAX;

/// One transfer, shared by the connection, which fills it, and the command, which waits for it. Its
/// tag may be used again as soon as the data is complete, before the command has seen it.
#[derive(Default)]
pub(super) struct Transfer {
    pieces: RefCell<Vec<Buffer>>,
    // True if a data digest did not hold. The command fails when all of its data has arrived.
    damaged: Cell<bool>,
    complete: Cell<bool>,
    done: Notify,
    // Number of the grant on its connection, which tells transfers under one tag apart.
    number: u64,
    bytes: u32,
}

impl Transfer {
    /// Returns the data, when all of it has come.
    ///
    /// # Errors
    /// [`Status::TRANSIENT_TRANSPORT_ERROR`] when a data digest did not hold.
    pub(super) async fn whole(&self) -> Result<Vec<Buffer>, Status> {
        while !self.complete.get() {
            self.done.notified().await;
        }
        if self.damaged.get() {
            return Err(Status::TRANSIENT_TRANSPORT_ERROR);
        }
        Ok(self.pieces.take())
    }
}

/// Transfers of a connection, by tag.
#[derive(Default)]
pub(super) struct Transfers {
    open: RefCell<BTreeMap<u16, Rc<Transfer>>>,
    made: Cell<u64>,
}

impl Transfers {
    /// Begins a transfer of `bytes` bytes under a tag that was just granted.
    pub(super) fn begin(&self, ttag: u16, bytes: u32) -> Rc<Transfer> {
        let number = self.made.get();
        self.made.set(number + 1);
        let pieces = pieces(bytes).into();
        let transfer = Rc::new(Transfer { pieces, number, bytes, ..Transfer::default() });
        let known = self.open.borrow_mut().insert(ttag, Rc::clone(&transfer));
        assert!(known.is_none(), "a tag is granted again only when its transfer is complete");
        transfer
    }

    /// Returns true when no data is outstanding.
    pub(super) fn is_empty(&self) -> bool {
        self.open.borrow().is_empty()
    }

    /// Drops all transfers.
    pub(super) fn clear(&self) {
        self.open.borrow_mut().clear();
    }

    /// Returns the number of the oldest transfer whose data is not complete.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.open.borrow().values().map(|transfer| transfer.number).min()
    }

    /// Returns the bytes of the transfers whose data is not complete.
    pub(super) fn bytes(&self) -> usize {
        self.open.borrow().values().map(|transfer| transfer.bytes as usize).sum()
    }

    /// Copies received data to its place in a transfer.
    pub(super) fn fill(&self, ttag: u16, offset: u32, mut bytes: &[u8]) {
        let mut at = offset;
        while !bytes.is_empty() {
            let count = self.with_slice(ttag, at, bytes.len(), |slice| {
                worked(slice.len() as u64);
                slice.copy_from_slice(&bytes[..slice.len()]);
                slice.len()
            });
            bytes = &bytes[count..];
            at += u32::try_from(count).expect("within a piece");
        }
    }

    /// Calls `visit` with the place for data of a transfer: from `offset` on, at most `most` bytes
    /// and not beyond one piece.
    pub(super) fn with_slice<T>(
        &self,
        ttag: u16,
        offset: u32,
        most: usize,
        visit: impl FnOnce(&mut [u8]) -> T,
    ) -> T {
        let transfers = self.open.borrow();
        let transfer = transfers.get(&ttag).expect("the wire knows which tags are granted");
        let mut pieces = transfer.pieces.borrow_mut();
        let piece = &mut pieces[(offset / PIECE_BYTES_MAX) as usize];
        let start = (offset % PIECE_BYTES_MAX) as usize;
        let end = piece.len().min(start + most);
        visit(&mut piece[start..end])
    }

    /// Notes the end of a PDU of a transfer. The last one ends the transfer.
    pub(super) fn end(&self, ttag: u16, complete: bool, digest_matches: bool) {
        let mut transfers = self.open.borrow_mut();
        let transfer = transfers.get(&ttag).expect("the wire knows which tags are granted");
        if !digest_matches {
            transfer.damaged.set(true);
        }
        if complete && let Some(transfer) = transfers.remove(&ttag) {
            transfer.complete.set(true);
            transfer.done.notify_all();
        }
    }
}

/// Allocates buffers for `bytes` bytes, each but the last of 128 KiB.
fn pieces(bytes: u32) -> Vec<Buffer> {
    let mut pieces = Vec::with_capacity(bytes.div_ceil(PIECE_BYTES_MAX) as usize);
    let mut left = bytes;
    while left > 0 {
        let length = left.min(PIECE_BYTES_MAX);
        pieces.push(Buffer::with_room(0, length as usize, 0));
        left -= length;
    }
    pieces
}
