//! [`Gathered`]: frames of the packets that a device has, for the next Send.
//!
//! Packets are read straight to their place. Invariants: a list is sound and fits one command;
//! frames leave in the order in which their packets were read.

use csd_nvme::vendor::tunnel::{
    FRAME_BYTES_MAX, LENGTH_BYTES, PACKET_BYTES_MAX, VIRTIO_NET_BYTES, seal,
};
use csd_reactor::Buffer;

use super::TunnelError;
use super::packets::{Packets, TunnelPort};

/// Bytes of a list: the longest frame has room. Longer ones save no time, and a drive that copies
/// one keeps the commands of its hosts waiting:
/// docs/decisions/2026-11-26-tunnel-yields-to-hosts.md.
const LIST_BYTES: usize = FRAME_BYTES_MAX as usize;
/// Bytes of a list and of one frame that may not fit.
const ROOM_BYTES: usize = LIST_BYTES + FRAME_BYTES_MAX as usize;

/// Place of the packet in a frame.
const PACKET_AT: usize = LENGTH_BYTES + VIRTIO_NET_BYTES;

/// Frames for the next Send, and at most one for the Send after it.
#[derive(Default)]
pub(super) struct Gathered {
    list: Buffer,
    used: usize,
    /// Length of the longest frame in the list: packets of a stream have one length.
    longest: usize,
    /// Frame that did not fit.
    next: Option<Buffer>,
}

impl Gathered {
    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Returns true if another frame like those of the list has no room in it.
    pub(super) fn is_full(&self) -> bool {
        self.next.is_some() || self.used + self.longest > LIST_BYTES
    }

    /// Reads packets until the list is full or the device has none.
    pub(super) fn fill<D: Packets>(&mut self, port: &TunnelPort<D>) -> Result<(), TunnelError> {
        while !self.is_full() {
            if self.list.is_empty() {
                self.list = Buffer::with_room(0, ROOM_BYTES, 0);
            }
            let frame = &mut self.list[self.used..];
            let room = LENGTH_BYTES..PACKET_AT + PACKET_BYTES_MAX;
            let Some(length) = port.device.try_read(&mut frame[room])? else { break };
            let sealed = seal(frame, length);
            let packet = &frame[PACKET_AT..LENGTH_BYTES + length.max(VIRTIO_NET_BYTES)];
            let is_given = |_: &usize| port.gate.is_none_or(|gate| gate.gives(packet));
            let Some(bytes) = sealed.filter(is_given) else {
                port.count(|counts| counts.dropped += 1);
                continue;
            };
            port.count(|counts| counts.sent += 1);
            if self.used + bytes > LIST_BYTES {
                self.next = Some(Buffer::from_slice(&frame[..bytes]));
            } else {
                self.used += bytes;
                self.longest = self.longest.max(bytes);
            }
        }
        Ok(())
    }

    /// Takes the list out.
    pub(super) fn take(&mut self) -> Buffer {
        let mut list = std::mem::take(&mut self.list);
        list.truncate(self.used);
        let next = self.next.take();
        *self = Self::default();
        if let Some(next) = next {
            self.list = Buffer::with_room(0, ROOM_BYTES, 0);
            self.list[..next.len()].copy_from_slice(&next);
            (self.used, self.longest) = (next.len(), next.len());
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::VecDeque;
    use std::io::{self, IoSlice};

    use csd_nvme::vendor::tunnel::parse;

    use super::*;

    /// Packets that a device has, with their headers.
    struct Device(RefCell<VecDeque<Vec<u8>>>);

    impl Packets for Device {
        fn try_read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
            let Some(packet) = self.0.borrow_mut().pop_front() else { return Ok(None) };
            into[..packet.len()].copy_from_slice(&packet);
            Ok(Some(packet.len()))
        }

        fn try_write(&self, _: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
            Ok(None)
        }

        async fn readable(&self) -> io::Result<()> {
            Ok(())
        }

        async fn writable(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the lengths of the packets in each list that a device's packets become.
    fn lists(lengths: &[usize]) -> Vec<Vec<usize>> {
        let packet = |length: &usize| {
            let mut packet = vec![0; VIRTIO_NET_BYTES + length];
            packet[VIRTIO_NET_BYTES] = 0x45;
            packet
        };
        let device = Device(RefCell::new(lengths.iter().map(packet).collect()));
        let port = TunnelPort { device, gate: None, counts: Cell::default() };
        let (mut gathered, mut lists) = (Gathered::default(), Vec::new());
        loop {
            gathered.fill(&port).unwrap();
            if gathered.is_empty() {
                return lists;
            }
            let list = gathered.take();
            assert!(list.len() <= LIST_BYTES);
            let frames = parse(&list).unwrap();
            lists.push(frames.iter().map(|frame| frame.packet.len()).collect());
        }
    }

    #[test]
    fn lists_take_as_many_packets_of_a_stream_as_fit() {
        assert_eq!(lists(&[15_000; 6]), [vec![15_000; 4], vec![15_000; 2]]);
        // The longest packet fits, and leaves no room for another.
        assert_eq!(lists(&[65_535; 2]), [[65_535]; 2]);
        assert_eq!(lists(&[40; 3]), [[40; 3]]);
        assert!(lists(&[]).is_empty());
    }

    #[test]
    fn a_packet_longer_than_those_before_it_is_the_first_of_the_next_list() {
        // It was read, and did not fit.
        let few = [5_000; 12].iter().chain(&[60_000]).copied().collect::<Vec<_>>();
        assert_eq!(lists(&few), [few[..12].to_vec(), few[12..].to_vec()]);
    }
}
