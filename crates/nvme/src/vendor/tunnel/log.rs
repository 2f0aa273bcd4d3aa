//! The tunnel's log page (C2h, vendor specific): its ends, their addresses and counts.

use std::net::IpAddr;

use crate::wire::{fixed_text, layout, text_of};

/// Version of the log page.
pub const LOG_VERSION: u16 = 1;

layout! {
    /// Header of the tunnel's log page.
    pub struct LogHeader[64] {
        /// [`LOG_VERSION`].
        version / set_version: u16 @ 0,
        /// Size of an entry in bytes: later versions may append fields.
        entry_bytes / set_entry_bytes: u16 @ 2,
        /// Number of entries that follow: the outside, then the inside.
        entries / set_entries: u32 @ 4,
        /// MTU of both ends in bytes.
        mtu / set_mtu: u32 @ 8,
    }
}

layout! {
    /// One end of the tunnel.
    pub struct LogEntry[384] {
        /// 0 for the outside, 1 for the inside.
        side / set_side: u8 @ 0,
        /// 1 if a host holds the end.
        present / set_present: u8 @ 1,
        /// 4 or 6, the kind of the address; 0 for none.
        family / set_family: u8 @ 2,
        /// Length of the network's prefix in bits.
        prefix / set_prefix: u8 @ 3,
        /// Controller that holds the end.
        cntlid / set_cntlid: u16 @ 4,
        /// Receives that wait.
        waiting / set_waiting: u16 @ 6,
        /// Address of the end, with zeros behind one of IPv4.
        address / set_address: [16] @ 8,
        /// Bytes of frames that wait for the end.
        queued / set_queued: u64 @ 24,
        /// Packets that the end has sent.
        sent_packets / set_sent_packets: u64 @ 32,
        /// Bytes of their frames.
        sent_bytes / set_sent_bytes: u64 @ 40,
        /// Packets that the end has received.
        received_packets / set_received_packets: u64 @ 48,
        /// Bytes of their frames.
        received_bytes / set_received_bytes: u64 @ 56,
        /// Packets for the end that were dropped, because no host held it.
        dropped_packets / set_dropped_packets: u64 @ 64,
        /// Number of times that a connection of the same host took the end over.
        takeovers / set_takeovers: u64 @ 72,
        /// Sends and Receives that were refused.
        refused / set_refused: u64 @ 80,
        /// Name of the host that holds the end, zero-terminated.
        host / set_host: [256] @ 128,
    }
}

impl LogEntry {
    /// Sets the address and the length of its network's prefix.
    pub fn set_network(&mut self, address: IpAddr, prefix: u8) -> &mut Self {
        let mut bytes = [0; 16];
        let family = match address {
            IpAddr::V4(address) => {
                bytes[..4].copy_from_slice(&address.octets());
                4
            }
            IpAddr::V6(address) => {
                bytes = address.octets();
                6
            }
        };
        self.set_family(family).set_prefix(prefix).set_address(&bytes)
    }

    /// Returns the address and the length of its network's prefix.
    pub fn network(&self) -> Option<(IpAddr, u8)> {
        let bytes = self.address();
        let address = match self.family() {
            4 => IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]]),
            6 => IpAddr::from(bytes),
            _ => return None,
        };
        Some((address, self.prefix()))
    }

    /// Sets the host's name.
    pub fn name_host(&mut self, nqn: &str) -> &mut Self {
        self.set_host(&fixed_text(nqn, 0))
    }

    /// Returns the host's name; empty if there is none.
    pub fn host_nqn(&self) -> String {
        text_of(&self.host()).unwrap_or_default().to_owned()
    }
}

/// Returns the data of the log page.
pub fn encode_log(mtu: u32, entries: &[LogEntry]) -> Vec<u8> {
    let mut header = LogHeader::zeroed();
    let count = u32::try_from(entries.len()).expect("a tunnel has two ends");
    header.set_version(LOG_VERSION).set_entries(count).set_mtu(mtu);
    header.set_entry_bytes(u16::try_from(LogEntry::SIZE).expect("384"));
    let mut data = header.as_bytes().to_vec();
    entries.iter().for_each(|entry| data.extend_from_slice(entry.as_bytes()));
    data
}

/// Parses the data of the log page: the MTU and the ends. `None` if it is cut short or of another
/// version.
pub fn parse_log(data: &[u8]) -> Option<(u32, Vec<LogEntry>)> {
    let header = LogHeader::parse(data.get(..LogHeader::SIZE)?)?;
    let step = usize::from(header.entry_bytes());
    if header.version() != LOG_VERSION || step < LogEntry::SIZE {
        return None;
    }
    let count = usize::try_from(header.entries()).ok()?;
    let entries = data[LogHeader::SIZE..].chunks(step).take(count);
    let entries: Option<Vec<_>> =
        entries.map(|entry| LogEntry::parse(entry.get(..LogEntry::SIZE)?)).collect();
    entries.filter(|entries| entries.len() == count).map(|entries| (header.mtu(), entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_round_trips_and_short_ones_are_none() {
        let mut outside = LogEntry::zeroed();
        outside.set_present(1).name_host("nqn.x").set_network([10, 77, 0, 1].into(), 24);
        let mut inside = LogEntry::zeroed();
        inside.set_side(1).set_network("fd00::2".parse().unwrap(), 64);
        let data = encode_log(9000, &[outside, inside]);
        let (mtu, entries) = parse_log(&data).unwrap();
        assert_eq!((mtu, entries.len(), entries[0].host_nqn().as_str()), (9000, 2, "nqn.x"));
        assert_eq!(entries[1].network(), Some(("fd00::2".parse().unwrap(), 64)));
        assert_eq!(LogEntry::zeroed().network(), None);
        for end in [0, 63, 64, data.len() - 1] {
            assert!(parse_log(&data[..end]).is_none(), "{end}");
        }
        assert!(parse_log(&[9; 4096]).is_none());
    }
}
