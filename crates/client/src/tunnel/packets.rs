//! [`TunnelPort`]: a device of packets ([`Packets`]), and the rule for packets between a host and a
//! drive ([`Gate`]).

use std::cell::Cell;
use std::future::Future;
use std::io::{self, IoSlice};
use std::net::IpAddr;

use csd_nvme::vendor::tunnel::{Frame, VirtioNet};
use csd_reactor::Stream;

/// A device of packets with virtio-net headers: a TUN device that the reactor watches, or a
/// stand-in of a test.
pub trait Packets {
    /// Reads a packet with its header; `None` if there is none.
    ///
    /// # Errors
    /// If the device failed.
    fn try_read(&self, into: &mut [u8]) -> io::Result<Option<usize>>;

    /// Writes a packet, whose header and bytes are the parts; `None` if the device has no room.
    ///
    /// # Errors
    /// If the device does not take the packet.
    fn try_write(&self, parts: &[IoSlice<'_>]) -> io::Result<Option<usize>>;

    /// Waits until a packet may be read.
    fn readable(&self) -> impl Future<Output = io::Result<()>>;

    /// Waits until a packet may be written.
    fn writable(&self) -> impl Future<Output = io::Result<()>>;
}

impl Packets for Stream {
    fn try_read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        self.try_recv(into)
    }

    fn try_write(&self, parts: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        self.try_send(parts)
    }

    fn readable(&self) -> impl Future<Output = io::Result<()>> {
        Self::readable(self)
    }

    fn writable(&self) -> impl Future<Output = io::Result<()>> {
        Self::writable(self)
    }
}

/// Counts of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelCounts {
    /// Packets sent to the drive.
    pub sent: u64,
    /// Packets written to the device.
    pub received: u64,
    /// Packets dropped, because one side or the [`Gate`] did not take them.
    pub dropped: u64,
}

/// The device of an end, the gate before it, and counts over all connections.
#[derive(Debug)]
pub struct TunnelPort<D> {
    /// Device.
    pub device: D,
    /// Rule for packets from and to the drive; without one all are taken.
    pub gate: Option<Gate>,
    /// Counts of packets.
    pub counts: Cell<TunnelCounts>,
}

impl<D> TunnelPort<D> {
    pub(super) fn count(&self, note: impl FnOnce(&mut TunnelCounts)) {
        let mut counts = self.counts.get();
        note(&mut counts);
        self.counts.set(counts);
    }
}

/// Rule for the packets that a host takes from a drive: their source is the drive's address, and
/// their destination is in the network of the tunnel. So a drive takes no other one's name, and
/// reaches only the host and the drives that share the network. A host gives a drive packets to its
/// address alone: those to an unassigned address of the network end here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Address of the drive's end.
    pub drive: IpAddr,
    /// Network of the tunnel: an address in it, and the length of its prefix.
    pub network: (IpAddr, u8),
}

impl Gate {
    /// Returns true if the host takes the packet of a sound frame.
    #[must_use]
    pub fn admits(&self, frame: &Frame<'_>) -> bool {
        let (source, destination) = frame.addresses();
        source == self.drive && is_in(destination, self.network)
    }

    /// Returns true if the drive gets a sound packet of the host's device.
    pub(super) fn gives(&self, packet: &[u8]) -> bool {
        let (_, destination) = Frame { header: VirtioNet::zeroed(), packet }.addresses();
        destination == self.drive
    }
}

/// Returns true if an address is in the network of another one.
fn is_in(address: IpAddr, (network, bits): (IpAddr, u8)) -> bool {
    let differ = match (address, network) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            let differ = one.to_bits() ^ other.to_bits();
            u128::from(differ) << 96
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => one.to_bits() ^ other.to_bits(),
        _ => return false,
    };
    differ.leading_zeros() >= bits.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the header of a packet from one address to another.
    fn packet(from: &str, to: &str) -> Vec<u8> {
        match (from.parse().unwrap(), to.parse().unwrap()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let mut packet = vec![0; 20];
                packet[0] = 0x45;
                packet[12..16].copy_from_slice(&from.octets());
                packet[16..].copy_from_slice(&to.octets());
                packet
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let mut packet = vec![0; 40];
                packet[0] = 0x60;
                packet[8..24].copy_from_slice(&from.octets());
                packet[24..].copy_from_slice(&to.octets());
                packet
            }
            _ => unreachable!("of one family"),
        }
    }

    #[test]
    fn a_host_takes_only_the_drives_packets_to_the_tunnels_network() {
        let admits = |gate: &Gate, from: &str, to: &str| {
            let packet = packet(from, to);
            gate.admits(&Frame { header: VirtioNet::zeroed(), packet: &packet })
        };
        let gate = |drive: &str, network: &str, bits| Gate {
            drive: drive.parse().unwrap(),
            network: (network.parse().unwrap(), bits),
        };
        let four = gate("10.77.0.2", "10.77.0.1", 24);
        assert!(admits(&four, "10.77.0.2", "10.77.0.1"));
        assert!(admits(&four, "10.77.0.2", "10.77.0.255"));
        assert!(!admits(&four, "10.77.0.3", "10.77.0.1"), "in another drive's name");
        assert!(!admits(&four, "10.77.0.2", "10.77.1.1"), "out of the network");
        assert!(!admits(&four, "10.77.0.2", "127.0.0.1"), "the host's loopback");
        assert!(!admits(&four, "fd00::2", "fd00::1"), "another family");
        let six = gate("fd00::2", "fd00::1", 64);
        assert!(admits(&six, "fd00::2", "fd00::ffff"));
        assert!(!admits(&six, "fd00::2", "fd00:0:0:1::1"));
        assert!(!admits(&six, "fe80::1", "ff02::16"));
        assert!(admits(&gate("10.0.0.1", "10.0.0.0", 0), "10.0.0.1", "8.8.8.8"), "every one");
        assert!(!admits(&gate("10.0.0.1", "10.0.0.2", 32), "10.0.0.1", "10.0.0.3"));
        assert!(four.gives(&packet("10.77.0.1", "10.77.0.2")));
        assert!(!four.gives(&packet("10.77.0.1", "10.77.0.99")), "an address that no drive has");
        assert!(!six.gives(&packet("fe80::1", "ff02::2")));
    }
}
