//! The tunnel: IP packets between a host and the drive's own operating system, as two vendor
//! specific commands of the compute namespace and a vendor specific log page.
//!
//! Send (C1h) carries frames to the other end, Receive (C2h) takes those that came from it. A frame
//! is a length, a virtio-net header and one packet, padded to dwords; a command carries any number.
//! `docs/internals/contracts.md` has the layout, and golden files hold it. Invariant: a list of
//! frames is either sound as a whole or refused as a whole.

mod log;

use std::net::IpAddr;

use crate::capsule::Sqe;
use crate::opcode::Cp;
use crate::status::Status;
use crate::wire::layout;

pub use log::{LOG_VERSION, LogEntry, LogHeader, encode_log, parse_log};

/// Length of the length field of a frame, bytes.
pub const LENGTH_BYTES: usize = 4;
/// Length of a virtio-net header without number of buffers, as TUN devices of Linux have it, bytes.
pub const VIRTIO_NET_BYTES: usize = 10;
/// Longest packet: the longest IPv4 packet, bytes.
pub const PACKET_BYTES_MAX: usize = 65_535;
/// Longest frame with its padding, bytes. A Receive has room for one.
pub const FRAME_BYTES_MAX: u32 = 65_552;
/// Most bytes of one command.
pub const DATA_BYTES_MAX: u32 = 256 << 10;

/// Header lengths of IPv4 and IPv6, bytes.
const IP_BYTES: [(u8, usize); 2] = [(4, 20), (6, 40)];
/// Flag of a virtio-net header: the checksum is left to the receiver.
const NEEDS_CSUM: u8 = 1;
/// Flags that a virtio-net header may have: NEEDS_CSUM and DATA_VALID.
const FLAGS: u8 = 3;
/// Segmentation types that a packet may be left to: none, TCP over IPv4, UDP, TCP over IPv6, UDP
/// datagrams.
const GSO_TYPES: [u8; 5] = [0, 1, 3, 4, 5];
/// Bit of a segmentation type: explicit congestion notification.
const GSO_ECN: u8 = 0x80;

layout! {
    /// Tunnel Send and Receive. The format of vendor specific commands that ICSVSCC announces.
    pub struct Transfer[64] {
        /// Number of Dwords in Data Transfer (NDT).
        ndt / set_ndt: u32 @ 40,
        /// Number of Dwords in Metadata Transfer (NDM), 0.
        ndm / set_ndm: u32 @ 44,
        /// Dwords 12 and 13, 0.
        low / set_low: u64 @ 48,
        /// Dwords 14 and 15, 0.
        high / set_high: u64 @ 56,
    }
}

layout! {
    /// virtio-net header, as TUN devices of Linux exchange it.
    pub struct VirtioNet[10] {
        /// Flags: 1 the checksum is partial, 2 it was checked.
        flags / set_flags: u8 @ 0,
        /// Segmentation type, 0 for none.
        gso_type / set_gso_type: u8 @ 1,
        /// Length of all headers of the packet in bytes.
        hdr_len / set_hdr_len: u16 @ 2,
        /// Bytes of data of each segment.
        gso_size / set_gso_size: u16 @ 4,
        /// Start of the part that is summed.
        csum_start / set_csum_start: u16 @ 6,
        /// Offset of the checksum after that start.
        csum_offset / set_csum_offset: u16 @ 8,
    }
}

/// A parsed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Packets to the other end.
    Send {
        /// Length of the frames in bytes.
        bytes: u32,
    },
    /// Packets from the other end.
    Receive {
        /// Room for frames in bytes.
        room: u32,
    },
}

impl Command {
    /// Parses a submission queue entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`]; [`Status::INVALID_FIELD`] for reserved dwords, a Send that is
    /// empty or longer than [`DATA_BYTES_MAX`], and a Receive with room for less than
    /// [`FRAME_BYTES_MAX`] or more than [`DATA_BYTES_MAX`].
    pub fn parse(sqe: &Sqe) -> Result<Self, Status> {
        let view = Transfer::from_bytes(*sqe.as_bytes());
        let bytes = u64::from(view.ndt()) * 4;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let is_reserved = (view.ndm(), view.low(), view.high()) != (0, 0, 0);
        match Cp(sqe.opcode()) {
            Cp::TUNNEL_SEND | Cp::TUNNEL_RECEIVE if is_reserved || bytes > DATA_BYTES_MAX => {
                Err(Status::INVALID_FIELD)
            }
            Cp::TUNNEL_SEND if bytes > 0 => Ok(Self::Send { bytes }),
            Cp::TUNNEL_RECEIVE if bytes >= FRAME_BYTES_MAX => Ok(Self::Receive { room: bytes }),
            Cp::TUNNEL_SEND | Cp::TUNNEL_RECEIVE => Err(Status::INVALID_FIELD),
            _ => Err(Status::INVALID_OPCODE),
        }
    }
}

/// Returns Tunnel Send of `bytes` bytes of frames, a multiple of 4.
pub fn send(nsid: u32, bytes: u32) -> Sqe {
    transfer(Cp::TUNNEL_SEND, nsid, bytes)
}

/// Returns Tunnel Receive with room for `room` bytes of frames, a multiple of 4. The result is the
/// number of bytes that came.
pub fn receive(nsid: u32, room: u32) -> Sqe {
    transfer(Cp::TUNNEL_RECEIVE, nsid, room)
}

fn transfer(opcode: Cp, nsid: u32, bytes: u32) -> Sqe {
    let mut view = Transfer::from_bytes(*Sqe::new(opcode.0, nsid).as_bytes());
    view.set_ndt(bytes / 4);
    Sqe::from_bytes(*view.as_bytes())
}

/// One packet with its virtio-net header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// virtio-net header.
    pub header: VirtioNet,
    /// IPv4 or IPv6 packet.
    pub packet: &'a [u8],
}

impl Frame<'_> {
    /// Appends the frame to a list.
    ///
    /// # Panics
    /// If the packet is longer than [`PACKET_BYTES_MAX`].
    pub fn encode(&self, list: &mut Vec<u8>) {
        assert!(self.packet.len() <= PACKET_BYTES_MAX, "no packet is that long");
        let length = u32::try_from(VIRTIO_NET_BYTES + self.packet.len()).expect("checked above");
        list.extend_from_slice(&length.to_le_bytes());
        list.extend_from_slice(self.header.as_bytes());
        list.extend_from_slice(self.packet);
        list.resize(list.len().next_multiple_of(4), 0);
    }

    /// Returns the addresses of a sound frame's packet: source and destination.
    pub fn addresses(&self) -> (IpAddr, IpAddr) {
        let v4 = |at: usize| <[u8; 4]>::try_from(&self.packet[at..at + 4]).expect("four bytes");
        let v6 = |at: usize| <[u8; 16]>::try_from(&self.packet[at..at + 16]).expect("sixteen");
        match self.packet[0] >> 4 {
            4 => (v4(12).into(), v4(16).into()),
            _ => (v6(8).into(), v6(24).into()),
        }
    }

    /// Returns true if it is an IP packet, and the header names no place outside it and nothing
    /// unknown.
    pub fn is_sound(&self) -> bool {
        let (header, length) = (&self.header, self.packet.len());
        let Some(first) = self.packet.first() else { return false };
        let needed = IP_BYTES.iter().find(|(version, _)| *version == first >> 4);
        if needed.is_none_or(|(_, bytes)| length < *bytes) {
            return false;
        }
        let gso = header.gso_type() & !GSO_ECN;
        if header.flags() & !FLAGS != 0 || !GSO_TYPES.contains(&gso) {
            return false;
        }
        let summed = usize::from(header.csum_start()) + usize::from(header.csum_offset()) + 2;
        let is_segmented = gso != 0;
        (header.flags() & NEEDS_CSUM == 0 || summed <= length)
            && usize::from(header.hdr_len()) <= length
            && (!is_segmented || header.gso_size() > 0)
            && (is_segmented || header.gso_type() == 0)
    }
}

/// Completes a frame in place: the header and the packet, of `length` bytes together, stand at
/// [`LENGTH_BYTES`]. Writes the length and the padding, and returns the length of the frame; `None`
/// if it is not sound, or `list` has no room for the padding.
pub fn seal(list: &mut [u8], length: usize) -> Option<usize> {
    let whole = (LENGTH_BYTES + length).next_multiple_of(4);
    let frame = list.get(LENGTH_BYTES..LENGTH_BYTES + length)?;
    let (header, packet) = frame.split_at_checked(VIRTIO_NET_BYTES)?;
    let is_sound = Frame { header: VirtioNet::parse(header)?, packet }.is_sound();
    if !is_sound || packet.len() > PACKET_BYTES_MAX || whole > list.len() {
        return None;
    }
    list[..LENGTH_BYTES].copy_from_slice(&u32::try_from(length).ok()?.to_le_bytes());
    list[LENGTH_BYTES + length..whole].fill(0);
    Some(whole)
}

/// Parses a list of frames.
///
/// # Errors
/// [`Status::INVALID_FIELD`] if the list is empty, is cut short, or has a frame that is too short,
/// too long, padded with anything but zeros, or without a sound IP packet.
pub fn parse(list: &[u8]) -> Result<Vec<Frame<'_>>, Status> {
    let mut frames = Vec::new();
    let mut rest = list;
    while !rest.is_empty() {
        let (frame, bytes) = first(rest).ok_or(Status::INVALID_FIELD)?;
        frames.push(frame);
        rest = &rest[bytes..];
    }
    if frames.is_empty() { Err(Status::INVALID_FIELD) } else { Ok(frames) }
}

/// Parses the first frame; returns it and its length with padding.
fn first(list: &[u8]) -> Option<(Frame<'_>, usize)> {
    let length = u32::from_le_bytes(*list.first_chunk::<LENGTH_BYTES>()?);
    let length = usize::try_from(length).ok()?;
    if !(VIRTIO_NET_BYTES..=VIRTIO_NET_BYTES + PACKET_BYTES_MAX).contains(&length) {
        return None;
    }
    let whole = (LENGTH_BYTES + length).next_multiple_of(4);
    let bytes = list.get(..whole)?;
    let (body, padding) = bytes[LENGTH_BYTES..].split_at(length);
    let (header, packet) = body.split_at(VIRTIO_NET_BYTES);
    let frame = Frame { header: VirtioNet::parse(header)?, packet };
    (frame.is_sound() && padding.iter().all(|byte| *byte == 0)).then_some((frame, whole))
}

/// Returns the length of the first frames that fit into `room` bytes, of a sound list.
pub fn fitting(list: &[u8], room: usize) -> usize {
    let mut fits = 0;
    while let Some((_, bytes)) = list.get(fits..).and_then(first) {
        if fits + bytes > room {
            break;
        }
        fits += bytes;
    }
    fits
}

/// Returns the number of frames of a sound list.
pub fn count(list: &[u8]) -> u64 {
    let mut rest = list;
    let mut frames = 0;
    while let Some((_, bytes)) = first(rest) {
        rest = &rest[bytes..];
        frames += 1;
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a packet of this version and length, whose last byte is `mark`.
    fn packet(version: u8, length: usize, mark: u8) -> Vec<u8> {
        let mut packet = vec![0; length];
        packet[0] = version << 4;
        packet[length - 1] = mark;
        packet
    }

    fn plain(packet: &[u8]) -> Vec<u8> {
        let mut list = Vec::new();
        Frame { header: VirtioNet::zeroed(), packet }.encode(&mut list);
        list
    }

    #[test]
    fn frames_round_trip_and_fit_whole() {
        let packets = [packet(4, 20, 1), packet(6, 41, 2), packet(4, PACKET_BYTES_MAX, 3)];
        let list = packets.iter().map(|packet| plain(packet)).collect::<Vec<_>>().concat();
        let parsed = parse(&list).unwrap();
        assert!(parsed.iter().map(|frame| frame.packet).eq(packets.iter().map(|one| &one[..])));
        assert_eq!(count(&list), 3);
        let ends = [36, 36 + 56, list.len()];
        for (room, fits) in [(35, 0), (36, 36), (91, 36), (92, 92), (list.len(), ends[2])] {
            assert_eq!(fitting(&list, room), fits, "{room}");
        }
        assert_eq!(plain(&packets[2]).len(), FRAME_BYTES_MAX as usize);
    }

    #[test]
    fn frames_sealed_in_place_are_those_encoded() {
        for length in [20, 21, 1500, PACKET_BYTES_MAX] {
            let expected = plain(&packet(4, length, 7));
            // Bytes of an earlier frame are there.
            let mut list = vec![0xEE; FRAME_BYTES_MAX as usize];
            list[LENGTH_BYTES..LENGTH_BYTES + VIRTIO_NET_BYTES].fill(0);
            list[14..14 + length].copy_from_slice(&packet(4, length, 7));
            assert_eq!(seal(&mut list, VIRTIO_NET_BYTES + length), Some(expected.len()));
            assert!(list[..expected.len()] == expected, "{length}");
            assert_eq!(seal(&mut list[..VIRTIO_NET_BYTES + length], 10 + length), None);
            list[14] = 0x55;
            assert_eq!(seal(&mut list, VIRTIO_NET_BYTES + length), None, "no IP packet");
        }
        assert_eq!(seal(&mut [0; 40], 9), None, "less than a header");
        let six = packet(6, 40, 9);
        let frame = Frame { header: VirtioNet::zeroed(), packet: &six };
        let last: IpAddr = "::9".parse().unwrap();
        assert_eq!(frame.addresses(), ("::".parse().unwrap(), last));
    }

    #[test]
    fn unsound_frames_are_refused_whole() {
        let good = plain(&packet(4, 20, 1));
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut list = [good.clone(), good.clone()].concat();
            change(&mut list);
            list
        };
        let cases: [(&str, Vec<u8>); 11] = [
            ("an empty list", Vec::new()),
            ("a list that is cut", with(&|list| list.truncate(list.len() - 4))),
            ("a length without its frame", with(&|list| list.truncate(40))),
            ("a frame without a packet", [&10_u32.to_le_bytes()[..], &[0; 12]].concat()),
            ("a frame shorter than its header", with(&|list| list[36] = 9)),
            ("a frame longer than any", with(&|list| list[38] = 1)),
            ("no IP packet", with(&|list| list[50] = 0x50)),
            ("half an IPv6 header", with(&|list| list[50] = 0x60)),
            ("padding that is none", with(&|list| *list.last_mut().unwrap() = 1)),
            ("an unknown segmentation", with(&|list| list[41] = 2)),
            ("a checksum beyond the packet", with(&|list| (list[40], list[46]) = (1, 19))),
        ];
        for (what, list) in cases {
            assert_eq!(parse(&list).err(), Some(Status::INVALID_FIELD), "{what}");
        }
        assert!(parse(&with(&|_| ())).is_ok());
    }

    #[test]
    fn commands_say_their_length_in_dwords() {
        let parsed = |sqe: Sqe| Command::parse(&sqe);
        assert_eq!(parsed(send(5, 36)), Ok(Command::Send { bytes: 36 }));
        let room = FRAME_BYTES_MAX;
        assert_eq!(parsed(receive(5, room)), Ok(Command::Receive { room }));
        assert_eq!(send(5, 36).as_bytes()[40..44], [9, 0, 0, 0]);
        let wrong = [send(5, 0), send(5, DATA_BYTES_MAX + 4), receive(5, room - 4)];
        for sqe in wrong.into_iter().chain([receive(5, DATA_BYTES_MAX + 4), send(5, u32::MAX)]) {
            assert_eq!(parsed(sqe), Err(Status::INVALID_FIELD), "{sqe:?}");
        }
        let mut reserved = Transfer::from_bytes(*send(5, 36).as_bytes());
        reserved.set_ndm(1);
        assert_eq!(parsed(Sqe::from_bytes(*reserved.as_bytes())), Err(Status::INVALID_FIELD));
        assert_eq!(parsed(Sqe::new(0x81, 5)), Err(Status::INVALID_OPCODE));
    }

    #[test]
    fn sources_are_those_of_the_packets() {
        let mut four = packet(4, 20, 0);
        four[12..16].copy_from_slice(&[10, 77, 0, 2]);
        let mut six = packet(6, 40, 0);
        six[23] = 9;
        let list = [plain(&four), plain(&six)].concat();
        let sources: Vec<_> =
            parse(&list).unwrap().iter().map(|f| f.addresses().0.to_string()).collect();
        assert_eq!(sources, ["10.77.0.2", "::9"]);
    }
}
