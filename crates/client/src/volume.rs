//! [`Volume`]: a block namespace on a core as a range of bytes, reconnected when its connection is
//! lost.
//!
//! While the drive is away its operations wait, for at most [`Retry::patience`]; then they fail,
//! and so does every other one until the drive is back. An operation whose completion is unknown is
//! sent again. Nothing is cached, so several volumes of a namespace see each other's writes; but a
//! write of a part of a block reads the rest of that block first, and is atomic only against
//! writes of the same volume. Invariant: an operation reaches only the namespace of the first
//! connection, by its identifier and size.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::{Rc, Weak};
use std::time::Duration;

use csd_initiator::{Address, Block, Controller, NamespaceKind, Options};
use csd_nvme::identify::{Cns, IDENTIFY_BYTES, IdentifyNamespace, identify};
use csd_nvme::nvm::{self, BLOCKS_MAX, Extent};
use csd_nvme::opcode::Csi;
use csd_reactor::{Buffer, Class, Instant, Notify, Semaphore, now, sleep, spawn, timeout};

/// Permits of the writers' semaphore: one for a write of whole blocks, all for another one.
const WRITERS: usize = 1 << 16;

/// Patience of a volume with a drive that is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Longest wait of an operation for the drive.
    pub patience: Duration,
    /// Pause between two attempts to connect.
    pub pause: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { patience: Duration::from_secs(30), pause: Duration::from_millis(200) }
    }
}

/// Reason why an operation of a volume failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VolumeError {
    /// The drive has been away for longer than the patience.
    #[error("{0}")]
    Away(csd_initiator::Error),
    /// The address has another namespace now.
    #[error("drive {drive}: namespace {nsid} is not the one that was there before")]
    Replaced {
        /// Address of the drive.
        drive: String,
        /// Namespace id.
        nsid: u32,
    },
    /// The range is not on the volume.
    #[error("the volume has {bytes} bytes, too few")]
    Beyond {
        /// Size of the volume in bytes.
        bytes: u64,
    },
    /// The drive refused a command, or could not be connected to at first.
    #[error(transparent)]
    Drive(#[from] csd_initiator::Error),
}

/// A block namespace as a range of bytes; clones are the same one. See the module's text.
#[derive(Clone)]
pub struct Volume(Rc<Inner>);

struct Inner {
    address: Address,
    options: Options,
    retry: Retry,
    identity: Identity,
    state: RefCell<State>,
    /// Notified when the state changes.
    changed: Notify,
    writers: Semaphore,
    reconnections: Cell<u64>,
}

enum State {
    Connected(Block),
    /// Since when, and why.
    Away(Instant, csd_initiator::Error),
    Replaced,
}

/// Properties by which a namespace is known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    nsid: u32,
    bytes: u64,
    block_bytes: u32,
    nguid: [u8; 16],
}

impl Volume {
    /// Connects to the namespace of `address`, or to the drive's first block namespace if the
    /// address names none.
    ///
    /// # Errors
    /// [`VolumeError::Drive`] if the drive cannot be reached or has no such namespace.
    pub async fn connect(
        address: &Address,
        options: &Options,
        retry: Retry,
    ) -> Result<Self, VolumeError> {
        let (block, identity) = connect(address, options).await?;
        Ok(Self(Rc::new(Inner {
            address: Address { nsid: Some(identity.nsid), ..address.clone() },
            options: options.clone(),
            retry,
            identity,
            state: RefCell::new(State::Connected(block)),
            changed: Notify::new(),
            writers: Semaphore::new(WRITERS),
            reconnections: Cell::new(0),
        })))
    }

    /// Returns the address, with the namespace.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.0.address
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.identity.bytes
    }

    /// Returns the size of a block in bytes. Ranges of whole blocks are the fast ones.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.0.identity.block_bytes
    }

    /// Returns the number of connections that replaced a lost one.
    #[must_use]
    pub fn reconnections(&self) -> u64 {
        self.0.reconnections.get()
    }

    /// Reads up to `length` bytes at `offset`: fewer at the end of the volume, none beyond it.
    ///
    /// # Errors
    /// [`VolumeError`].
    pub async fn read(&self, offset: u64, length: usize) -> Result<Buffer, VolumeError> {
        let begin = offset.min(self.bytes());
        let end = offset.saturating_add(length as u64).min(self.bytes());
        if begin == end {
            return Ok(Buffer::default());
        }
        let blocks = self.around(begin..end);
        let mut bytes = self.read_blocks(&blocks).await?;
        bytes.advance(len(begin - blocks.start));
        bytes.truncate(len(end - begin));
        Ok(bytes)
    }

    /// Writes bytes at `offset`. They are durable after a [`Self::flush`].
    ///
    /// # Errors
    /// [`VolumeError`]; [`VolumeError::Beyond`] if not all of them are on the volume.
    pub async fn write(&self, offset: u64, data: &[u8]) -> Result<(), VolumeError> {
        self.put(offset, data, false).await
    }

    /// Writes bytes at `offset` that are durable afterwards (FUA).
    ///
    /// # Errors
    /// As [`Self::write`].
    pub async fn write_through(&self, offset: u64, data: &[u8]) -> Result<(), VolumeError> {
        self.put(offset, data, true).await
    }

    async fn put(&self, offset: u64, data: &[u8], fua: bool) -> Result<(), VolumeError> {
        let range = self.within(offset, data.len() as u64)?;
        let blocks = self.around(range.clone());
        if blocks == range {
            let _writer = self.0.writers.acquire(1).await;
            return self.write_blocks(offset, data, fua).await;
        }
        let _alone = self.0.writers.acquire(WRITERS).await;
        let mut whole = self.read_blocks(&blocks).await?;
        whole[len(range.start - blocks.start)..][..data.len()].copy_from_slice(data);
        self.write_blocks(blocks.start, &whole, fua).await
    }

    /// Makes a range read as zeros, and gives the space of its whole blocks back if `deallocate`.
    ///
    /// # Errors
    /// [`VolumeError`]; [`VolumeError::Beyond`] if not all of it is on the volume.
    pub async fn zero(
        &self,
        offset: u64,
        length: u64,
        deallocate: bool,
    ) -> Result<(), VolumeError> {
        let range = self.within(offset, length)?;
        let block_bytes = u64::from(self.block_bytes());
        let first = range.start.next_multiple_of(block_bytes).min(range.end);
        let last = (range.end / block_bytes * block_bytes).max(first);
        for edge in [range.start..first, last..range.end] {
            if !edge.is_empty() {
                self.write(edge.start, &vec![0; len(edge.end - edge.start)]).await?;
            }
        }
        let step = u64::from(BLOCKS_MAX) * block_bytes;
        let mut at = first;
        while at < last {
            let end = last.min(at + step);
            let blocks = u32::try_from((end - at) / block_bytes).expect("at most 65,536");
            let extent = Extent { slba: at / block_bytes, blocks };
            let _writer = self.0.writers.acquire(1).await;
            self.run(async |block| {
                let sqe = nvm::write_zeroes(block.nsid(), extent, deallocate);
                block.controller().submit(sqe, Vec::new(), 0).await.map(drop)
            })
            .await?;
            at = end;
        }
        Ok(())
    }

    /// Makes the writes that have ended durable.
    ///
    /// # Errors
    /// [`VolumeError`].
    pub async fn flush(&self) -> Result<(), VolumeError> {
        self.run(async |block| block.flush().await).await
    }

    /// Disconnects in order, if the drive is there.
    pub async fn disconnect(self) {
        let block = match &*self.0.state.borrow() {
            State::Connected(block) => Some(block.clone()),
            _ => None,
        };
        if let Some(block) = block {
            block.controller().clone().disconnect().await;
        }
    }

    async fn read_blocks(&self, range: &Range<u64>) -> Result<Buffer, VolumeError> {
        self.run(async |block| block.read(range.start, len(range.end - range.start)).await).await
    }

    async fn write_blocks(&self, offset: u64, data: &[u8], fua: bool) -> Result<(), VolumeError> {
        self.run(async |block| block.write(offset, vec![Buffer::from_slice(data)], fua).await).await
    }

    /// Returns the range of whole blocks that a range touches.
    fn around(&self, range: Range<u64>) -> Range<u64> {
        let block = u64::from(self.block_bytes());
        range.start / block * block..range.end.next_multiple_of(block)
    }

    fn within(&self, offset: u64, length: u64) -> Result<Range<u64>, VolumeError> {
        match offset.checked_add(length) {
            Some(end) if end <= self.bytes() => Ok(offset..end),
            _ => Err(VolumeError::Beyond { bytes: self.bytes() }),
        }
    }

    /// Runs commands on a connection; runs them again on the next one if it is lost.
    async fn run<T>(
        &self,
        commands: impl AsyncFn(&Block) -> Result<T, csd_initiator::Error>,
    ) -> Result<T, VolumeError> {
        let mut lost_since: Option<Instant> = None;
        loop {
            let block = self.connected().await?;
            let error = match commands(&block).await {
                Err(error) if block.controller().closed().is_some() => error,
                done => return Ok(done?),
            };
            let since = *lost_since.get_or_insert_with(now);
            self.lose(&error);
            // A drive may take connections and lose them again and again.
            if since.elapsed() >= self.0.retry.patience {
                return Err(VolumeError::Away(error));
            }
        }
    }

    /// Notes that a connection is lost, and starts to reconnect.
    fn lose(&self, error: &csd_initiator::Error) {
        let mut state = self.0.state.borrow_mut();
        // Another operation may have noticed before, and may be connected again.
        let is_current =
            matches!(&*state, State::Connected(block) if block.controller().closed().is_some());
        if is_current {
            *state = State::Away(now(), error.clone());
            drop(state);
            drop(spawn(Class::System, reconnect(Rc::downgrade(&self.0))));
        }
    }

    /// Returns the connection; waits for it while the drive is away.
    async fn connected(&self) -> Result<Block, VolumeError> {
        loop {
            let changed = self.0.changed.notified();
            let left = match &*self.0.state.borrow() {
                State::Connected(block) => return Ok(block.clone()),
                State::Replaced => {
                    let (drive, nsid) = (self.0.address.to_string(), self.0.identity.nsid);
                    return Err(VolumeError::Replaced { drive, nsid });
                }
                State::Away(since, error) => {
                    match self.0.retry.patience.saturating_sub(since.elapsed()) {
                        Duration::ZERO => return Err(VolumeError::Away(error.clone())),
                        left => left,
                    }
                }
            };
            // Either way, the state says what is next.
            let _ = timeout(left, changed).await;
        }
    }
}

impl std::fmt::Debug for Volume {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Volume({})", self.0.address)
    }
}

impl Inner {
    /// Notes the outcome of an attempt to reconnect.
    fn note(&self, connected: Result<(Block, Identity), csd_initiator::Error>, is_back: bool) {
        let state = &mut *self.state.borrow_mut();
        match (connected, &*state) {
            (Ok((block, _)), _) if is_back => {
                *state = State::Connected(block);
                self.reconnections.set(self.reconnections.get() + 1);
            }
            (Ok(_), _) => *state = State::Replaced,
            (Err(error), State::Away(since, _)) => *state = State::Away(*since, error),
            (Err(_), _) => {}
        }
    }
}

/// Connects until it succeeds or the volume is gone.
async fn reconnect(volume: Weak<Inner>) {
    loop {
        let Some(inner) = volume.upgrade() else { return };
        let (address, options, pause) =
            (inner.address.clone(), inner.options.clone(), inner.retry.pause);
        drop(inner);
        let connected = connect(&address, &options).await;
        let Some(inner) = volume.upgrade() else { return };
        let is_back = matches!(&connected, Ok((_, identity)) if *identity == inner.identity);
        inner.note(connected, is_back);
        inner.changed.notify_all();
        if is_back {
            return;
        }
        drop(inner);
        sleep(pause).await;
    }
}

/// Connects to a block namespace, and identifies it.
async fn connect(
    address: &Address,
    options: &Options,
) -> Result<(Block, Identity), csd_initiator::Error> {
    let controller = Controller::connect(address, options).await?;
    let is_block = |kind: &NamespaceKind| matches!(kind, NamespaceKind::Block { .. });
    let first = controller.namespaces().iter().find(|one| is_block(&one.kind));
    let nsid = address.nsid.or(first.map(|one| one.nsid)).unwrap_or(1);
    let block = Block::open(&controller, nsid)?;
    let sqe = identify(Cns::NAMESPACE, nsid, Csi::NVM);
    let reply = controller.admin(sqe, &[], u32::try_from(IDENTIFY_BYTES).expect("4096")).await?;
    let nguid = IdentifyNamespace::parse(&reply.data).map(|data| data.nguid()).unwrap_or_default();
    let identity = Identity { nsid, bytes: block.bytes(), block_bytes: block.block_bytes(), nguid };
    Ok((block, identity))
}

/// Converts the length of a range of memory.
fn len(bytes: u64) -> usize {
    usize::try_from(bytes).expect("memory is addressed by 64 bits")
}
