//! One end of a drive's tunnel on a core: packets between a TUN device and the drive.
//!
//! Packets of one device leave in the order in which they were read, and arrive in the order in
//! which the drive has them: commands begin one after the other on one queue, and their replies are
//! taken in the same order. Connecting again is the caller's. Invariants: a packet that the device
//! or the drive does not take is counted and dropped, and ends nothing; no packet is sent twice.

use std::cell::Cell;
use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::net::IpAddr;

use csd_initiator::{Address, Controller, Error, Options};
use csd_nvme::log::{LogId, get_log_page};
use csd_nvme::opcode::Csi;
use csd_nvme::status::Status;
use csd_nvme::tunnel::{
    DATA_BYTES_MAX, FRAME_BYTES_MAX, Frame, LogEntry, LogHeader, PACKET_BYTES_MAX,
    VIRTIO_NET_BYTES, VirtioNet, parse, parse_log, receive, send,
};
use csd_nvme::vendor::NSID_COMPUTE;
use csd_reactor::{Buffer, Stream, race};

use crate::ordered::Ordered;

/// Sends under way.
const SENDS: usize = 4;
/// Receives that wait or are under way.
const RECEIVES: usize = 8;

/// What a drive says of its tunnel.
#[derive(Clone, Debug)]
pub struct TunnelLog {
    /// MTU of both ends in bytes.
    pub mtu: u32,
    /// The outside, which hosts have, and the inside.
    pub ends: [LogEntry; 2],
}

/// Error that ended an end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunnelError {
    /// The device failed.
    #[error("the device of the tunnel: {0}")]
    Device(#[from] io::Error),
    /// The drive refused, or its connection is lost.
    #[error(transparent)]
    Drive(#[from] Error),
    /// The drive has no tunnel.
    #[error("drive {0}: it has no tunnel: start it with --tunnel-host")]
    NoTunnel(String),
    /// The drive does not let this host use the tunnel.
    #[error("drive {0}: it refuses this host the tunnel, and its log says why")]
    Refused(String),
}

/// Counts of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelCounts {
    /// Packets sent to the drive.
    pub sent: u64,
    /// Packets written to the device.
    pub received: u64,
    /// Packets dropped, because one side did not take them or their source is not the far end's.
    pub dropped: u64,
}

/// One end of a tunnel; see the module's text.
pub struct TunnelEnd {
    controller: Controller,
    counts: Cell<TunnelCounts>,
}

impl TunnelEnd {
    /// Connects to a drive, with one I/O queue.
    ///
    /// # Errors
    /// [`TunnelError::Drive`].
    pub async fn connect(address: &Address, options: &Options) -> Result<Self, TunnelError> {
        let options = Options { io_queues: 1, ..options.clone() };
        let controller = Controller::connect(address, &options).await?;
        Ok(Self { controller, counts: Cell::default() })
    }

    /// Returns the drive's log page of the tunnel.
    ///
    /// # Errors
    /// [`TunnelError::NoTunnel`], or any of a command's.
    pub async fn log(&self) -> Result<TunnelLog, TunnelError> {
        let bytes = u32::try_from(LogHeader::SIZE + 2 * LogEntry::SIZE).expect("832");
        let sqe = get_log_page(LogId::TUNNEL, NSID_COMPUTE, Csi::CP, 0, bytes);
        let data = match self.controller.admin(sqe, &[], bytes).await {
            Err(error) if error.status() == Some(Status::INVALID_LOG_PAGE) => {
                return Err(TunnelError::NoTunnel(self.drive()));
            }
            reply => reply?.data,
        };
        let (mtu, ends) = parse_log(&data).ok_or_else(|| TunnelError::NoTunnel(self.drive()))?;
        let ends = ends.try_into().map_err(|_| TunnelError::NoTunnel(self.drive()))?;
        Ok(TunnelLog { mtu, ends })
    }

    /// Carries packets until the connection or the device fails. Packets from the drive whose
    /// source is not `far` are dropped, if it is given.
    ///
    /// # Errors
    /// The error that ended it.
    pub async fn carry(&self, device: &Stream, far: Option<IpAddr>) -> TunnelError {
        let ended = race(self.outgoing(device), self.incoming(device, far)).await;
        let Err(error) = ended;
        match error {
            TunnelError::Drive(error) if error.status() == Some(Status::OPERATION_DENIED) => {
                TunnelError::Refused(self.drive())
            }
            error => error,
        }
    }

    /// Returns the counts.
    #[must_use]
    pub fn counts(&self) -> TunnelCounts {
        self.counts.get()
    }

    fn drive(&self) -> String {
        self.controller.address().to_string()
    }

    fn count(&self, note: impl FnOnce(&mut TunnelCounts)) {
        let mut counts = self.counts.get();
        note(&mut counts);
        self.counts.set(counts);
    }

    async fn outgoing(&self, device: &Stream) -> Result<Infallible, TunnelError> {
        let mut sends = Ordered::new();
        let mut packet = vec![0; VIRTIO_NET_BYTES + PACKET_BYTES_MAX];
        loop {
            let list = self.read(device, &mut packet)?;
            if list.is_empty() {
                device.readable().await?;
                continue;
            }
            while sends.len() >= SENDS {
                match sends.next().await {
                    // The drive knows better which packets are sound.
                    Some(Err(Error::Status { status: Status::INVALID_FIELD, .. })) => {
                        self.count(|counts| counts.dropped += 1);
                    }
                    Some(Err(error)) => return Err(TunnelError::Drive(error)),
                    _ => {}
                }
            }
            let bytes = u32::try_from(list.len()).expect("at most 256 KiB");
            let sqe = send(NSID_COMPUTE, bytes);
            let controller = self.controller.clone();
            let data = vec![Buffer::from_slice(&list)];
            sends.begin(async move { controller.submit(sqe, data, 0).await.map(drop) }).await;
        }
    }

    /// Reads the packets that the device has, as far as they fit a command.
    fn read(&self, device: &Stream, packet: &mut [u8]) -> Result<Vec<u8>, TunnelError> {
        let mut list = Vec::new();
        while list.len() + FRAME_BYTES_MAX as usize <= DATA_BYTES_MAX as usize {
            let Some(length) = device.try_recv(packet)? else { break };
            let (header, body) = packet[..length].split_at(VIRTIO_NET_BYTES.min(length));
            match VirtioNet::parse(header).map(|header| Frame { header, packet: body }) {
                Some(frame) if frame.is_sound() => {
                    frame.encode(&mut list);
                    self.count(|counts| counts.sent += 1);
                }
                _ => self.count(|counts| counts.dropped += 1),
            }
        }
        Ok(list)
    }

    async fn incoming(
        &self,
        device: &Stream,
        far: Option<IpAddr>,
    ) -> Result<Infallible, TunnelError> {
        let mut receives = Ordered::new();
        loop {
            while receives.len() < RECEIVES {
                let controller = self.controller.clone();
                let sqe = receive(NSID_COMPUTE, DATA_BYTES_MAX);
                let reply = async move { controller.submit(sqe, vec![], DATA_BYTES_MAX).await };
                receives.begin(reply).await;
            }
            let Some(reply) = receives.next().await else { continue };
            let list = reply?.data;
            // A drive that sends unsound frames is as one that drops them.
            for frame in parse(&list).unwrap_or_default() {
                let is_ours = far.is_none_or(|far| frame.source() == far);
                if is_ours && write(device, &frame).await {
                    self.count(|counts| counts.received += 1);
                } else {
                    self.count(|counts| counts.dropped += 1);
                }
            }
        }
    }
}

/// Writes a packet to the device; returns false if the device does not take it.
async fn write(device: &Stream, frame: &Frame<'_>) -> bool {
    let parts = [IoSlice::new(frame.header.as_bytes()), IoSlice::new(frame.packet)];
    loop {
        match device.try_send(&parts) {
            Ok(Some(_)) => return true,
            Ok(None) if device.writable().await.is_ok() => {}
            _ => return false,
        }
    }
}
