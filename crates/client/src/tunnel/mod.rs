//! One end of a drive's tunnel on a core: packets between a device and the drive.
//!
//! Packets of one device leave in the order in which they were read, and arrive in the order in
//! which the drive has them: commands begin one after the other on one queue, and their replies are
//! taken in the same order. Invariants: a packet that the device or the drive does not take is
//! counted and dropped, and ends nothing; no packet is sent twice.
//!
//! - `gathered`: packets of a device for one Send
//! - `packets`: devices, and the packets that a host takes
//! - `keep`: an end that connects again

mod gathered;
mod keep;
mod packets;

use std::cell::RefCell;
use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::time::Duration;

use csd_initiator::{Address, Controller, Error, Options};
use csd_nvme::log::{LogId, get_log_page};
use csd_nvme::opcode::Csi;
use csd_nvme::status::Status;
use csd_nvme::vendor::NSID_COMPUTE;
use csd_nvme::vendor::tunnel::{
    DATA_BYTES_MAX, Frame, LogEntry, LogHeader, parse, parse_log, receive, send,
};
use csd_reactor::{Buffer, race, timeout};

use crate::ordered::Ordered;
use gathered::Gathered;
pub use packets::{Gate, Packets, TunnelCounts, TunnelPort};

/// Most Sends under way.
const SENDS: usize = 8;
/// Sends under way from which on packets gather until the next Send is full: few long commands cost
/// less than many short ones.
const SENDS_SHORT: usize = 2;
/// Receives that wait or are under way.
const RECEIVES: usize = 4;
/// Pause between two looks if the drive has given the end to this connection.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// A drive's description of its tunnel.
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
    #[error("drive {drive}: host {host} may not use its tunnel: name it with --tunnel-host")]
    Unknown {
        /// Address of the drive.
        drive: String,
        /// NVMe Qualified Name of this host.
        host: String,
    },
    /// Another host has the end.
    #[error("drive {drive}: host {holder} has this end of its tunnel, until it disconnects")]
    Held {
        /// Address of the drive.
        drive: String,
        /// NVMe Qualified Name of the other host.
        holder: String,
    },
    /// A later connection of this host has the end now.
    #[error("drive {0}: a later connection of this host has taken its tunnel over")]
    TakenOver(String),
    /// The drive was started again with another tunnel.
    #[error("drive {0}: its tunnel has other addresses or another MTU now")]
    Changed(String),
}

type Receives = Ordered<'static, Result<Buffer, Error>>;

/// One end of a tunnel; see the module's text.
pub struct TunnelEnd {
    controller: Controller,
    options: Options,
    /// Index into [`TunnelLog::ends`].
    side: usize,
    log: TunnelLog,
    receives: RefCell<Receives>,
}

impl TunnelEnd {
    /// Connects to a drive, with one I/O queue, and asks for its tunnel. The inside is the end of
    /// those who connect to the drive's Unix socket.
    ///
    /// # Errors
    /// [`TunnelError::NoTunnel`], [`TunnelError::Drive`].
    pub async fn connect(address: &Address, options: &Options) -> Result<Self, TunnelError> {
        let options = Options { io_queues: 1, ..options.clone() };
        let controller = Controller::connect(address, &options).await?;
        let log = read_log(&controller).await?;
        let side = usize::from(address.socket.path().is_some());
        Ok(Self { controller, options, side, log, receives: RefCell::new(Ordered::new()) })
    }

    /// Takes the end, with a first Receive, and waits until the drive has given it.
    ///
    /// # Errors
    /// [`TunnelError::Unknown`], [`TunnelError::Held`], [`TunnelError::Drive`].
    pub async fn join(&mut self) -> Result<(), TunnelError> {
        let mut first = Box::pin(receive_one(self.controller.clone()));
        loop {
            if let Ok(reply) = timeout(LOOK_EVERY, &mut first).await {
                let data = self.check(reply).await?;
                self.receives.get_mut().push(std::future::ready(Ok(data)));
                return Ok(());
            }
            self.log = read_log(&self.controller).await?;
            let own = &self.log.ends[self.side];
            if own.present() == 1 && own.cntlid() == self.controller.identity().cntlid() {
                self.receives.get_mut().push(first);
                return Ok(());
            }
        }
    }

    /// Returns the drive's log page of the tunnel, as it was last read.
    #[must_use]
    pub fn log(&self) -> &TunnelLog {
        &self.log
    }

    /// Returns the side, as an index into [`TunnelLog::ends`]: 0 outside, 1 inside.
    #[must_use]
    pub fn side(&self) -> usize {
        self.side
    }

    /// Carries packets until the connection or the device fails; returns the error that ended it.
    pub async fn carry<D: Packets>(&self, port: &TunnelPort<D>) -> TunnelError {
        let Err(error) = race(self.outgoing(port), self.incoming(port)).await;
        error
    }

    /// Returns the reply to a command; a refusal is said in the words of the tunnel.
    async fn check<T>(&self, reply: Result<T, Error>) -> Result<T, TunnelError> {
        let error = match reply {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        let drive = self.controller.address().to_string();
        match error.status() {
            Some(Status::ABORT_REQUESTED) => Err(TunnelError::TakenOver(drive)),
            Some(Status::OPERATION_DENIED) => {
                let end = read_log(&self.controller).await?.ends[self.side];
                let holder = end.host_nqn();
                Err(if end.present() == 0 || holder.is_empty() {
                    TunnelError::Unknown { drive, host: self.options.host_nqn.clone() }
                } else if holder == self.options.host_nqn {
                    TunnelError::TakenOver(drive)
                } else {
                    TunnelError::Held { drive, holder }
                })
            }
            _ => Err(TunnelError::Drive(error)),
        }
    }

    async fn outgoing<D: Packets>(&self, port: &TunnelPort<D>) -> Result<Infallible, TunnelError> {
        let (mut gathered, mut sends) = (Gathered::default(), Ordered::new());
        loop {
            gathered.fill(port)?;
            let most = if gathered.is_full() { SENDS } else { SENDS_SHORT };
            if gathered.is_empty() {
                port.device.readable().await?;
            } else if sends.len() >= most {
                let more = async {
                    match gathered.is_full() {
                        true => std::future::pending().await,
                        false => port.device.readable().await,
                    }
                };
                match race(async { Ok(sends.next().await) }, async { Err(more.await) }).await {
                    Ok(ended) => self.note_sent(port, ended).await?,
                    Err(readable) => readable?,
                }
            } else {
                let list = gathered.take();
                let bytes = u32::try_from(list.len()).expect("at most the longest frame");
                let (sqe, controller) = (send(NSID_COMPUTE, bytes), self.controller.clone());
                let sent = async move { controller.submit(sqe, vec![list], 0).await.map(drop) };
                sends.begin(sent).await;
            }
        }
    }

    /// Takes the reply to a Send.
    async fn note_sent<D: Packets>(
        &self,
        port: &TunnelPort<D>,
        ended: Option<Result<(), Error>>,
    ) -> Result<(), TunnelError> {
        match ended {
            // The drive knows better which packets are sound.
            Some(Err(Error::Status { status: Status::INVALID_FIELD, .. })) => {
                port.count(|counts| counts.dropped += 1);
                Ok(())
            }
            Some(reply) => self.check(reply).await,
            None => Ok(()),
        }
    }

    async fn incoming<D: Packets>(&self, port: &TunnelPort<D>) -> Result<Infallible, TunnelError> {
        let mut receives = self.receives.replace(Ordered::new());
        loop {
            while receives.len() < RECEIVES {
                receives.begin(receive_one(self.controller.clone())).await;
            }
            let Some(reply) = receives.next().await else { continue };
            let list = self.check(reply).await?;
            // A drive that sends unsound frames is as one that drops them.
            for frame in parse(&list).unwrap_or_default() {
                let is_admitted = port.gate.is_none_or(|gate| gate.admits(&frame));
                if is_admitted && write(&port.device, &frame).await {
                    port.count(|counts| counts.received += 1);
                } else {
                    port.count(|counts| counts.dropped += 1);
                }
            }
        }
    }
}

/// Receives once; returns the frames.
async fn receive_one(controller: Controller) -> Result<Buffer, Error> {
    let sqe = receive(NSID_COMPUTE, DATA_BYTES_MAX);
    controller.submit(sqe, vec![], DATA_BYTES_MAX).await.map(|reply| reply.data)
}

/// Reads the drive's log page of the tunnel.
async fn read_log(controller: &Controller) -> Result<TunnelLog, TunnelError> {
    let none = || TunnelError::NoTunnel(controller.address().to_string());
    let bytes = u32::try_from(LogHeader::SIZE + 2 * LogEntry::SIZE).expect("832");
    let sqe = get_log_page(LogId::TUNNEL, NSID_COMPUTE, Csi::CP, 0, bytes);
    let data = match controller.admin(sqe, &[], bytes).await {
        Err(error) if error.status() == Some(Status::INVALID_LOG_PAGE) => return Err(none()),
        reply => reply?.data,
    };
    let (mtu, ends) = parse_log(&data).ok_or_else(none)?;
    Ok(TunnelLog { mtu, ends: ends.try_into().map_err(|_| none())? })
}

/// Writes a packet to the device; returns false if the device does not take it.
async fn write(device: &impl Packets, frame: &Frame<'_>) -> bool {
    let parts = [IoSlice::new(frame.header.as_bytes()), IoSlice::new(frame.packet)];
    loop {
        match device.try_write(&parts) {
            Ok(Some(_)) => return true,
            Ok(None) if device.writable().await.is_ok() => {}
            _ => return false,
        }
    }
}
