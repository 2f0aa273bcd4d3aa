//! The discovery log page: subsystems that a host may connect to, and their addresses.
//!
//! Source: NVM Express Base Specification 2.2, "Discovery Log Page". [`crate::controller`] makes a
//! drive's records.

use std::net::{IpAddr, SocketAddr};

use crate::fabrics::CNTLID_DYNAMIC;
use crate::wire::{fixed_text, layout, text_of};

/// NQN of every discovery subsystem.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

layout! {
    /// Head of the discovery log page (LID 70h); the records follow.
    pub struct DiscoveryHeader[1024] {
        /// Generation Counter (GENCTR).
        genctr / set_genctr: u64 @ 0,
        /// Number of Records (NUMREC).
        numrec / set_numrec: u64 @ 8,
        /// Record Format (RECFMT), 0.
        recfmt / set_recfmt: u16 @ 16,
        /// Total Discovery Log Page Length (TDLPL) in bytes.
        tdlpl / set_tdlpl: u32 @ 20,
    }
}

layout! {
    /// One record of the discovery log page.
    pub struct DiscoveryRecord[1024] {
        /// Transport Type (TRTYPE): 3 is TCP.
        trtype / set_trtype: u8 @ 0,
        /// Address Family (ADRFAM): 1 IPv4, 2 IPv6.
        adrfam / set_adrfam: u8 @ 1,
        /// Subsystem Type (SUBTYPE).
        subtype / set_subtype: u8 @ 2,
        /// Transport Requirements (TREQ): bits 1:0 secure channel, 10b not required.
        treq / set_treq: u8 @ 3,
        /// Port ID (PORTID).
        portid / set_portid: u16 @ 4,
        /// Controller ID (CNTLID): FFFFh, the dynamic model.
        cntlid / set_cntlid: u16 @ 6,
        /// Admin Max SQ Size (ASQSZ).
        asqsz / set_asqsz: u16 @ 8,
        /// Entry Flags (EFLAGS).
        eflags / set_eflags: u16 @ 10,
        /// Transport Service Identifier (TRSVCID): the port in ASCII, space-padded.
        trsvcid / set_trsvcid: [32] @ 32,
        /// NVM Subsystem Qualified Name (SUBNQN).
        subnqn / set_subnqn: [256] @ 256,
        /// Transport Address (TRADDR) in ASCII, space-padded.
        traddr / set_traddr: [256] @ 512,
        /// Transport Specific Address Subtype (TSAS): for TCP the security type, 0 is none.
        sectype / set_sectype: u8 @ 768,
    }
}

/// Transport type: TCP.
pub const TRANSPORT_TCP: u8 = 3;
/// Subsystem type: an NVM subsystem.
pub const SUBTYPE_NVM: u8 = 2;
/// Subsystem type: the discovery subsystem that answers.
pub const SUBTYPE_CURRENT_DISCOVERY: u8 = 3;
/// Entry flag: explicit persistent connections are supported (EPCSD).
pub const EFLAG_PERSISTENT: u16 = 1 << 1;
/// Secure channel not required.
const TREQ_NOT_REQUIRED: u8 = 2;
/// Minimum entries of an admin queue of a fabrics controller.
const ADMIN_ENTRIES: u16 = 32;

impl DiscoveryRecord {
    /// Returns a record for the subsystem `nqn` at `address`.
    pub fn tcp(address: SocketAddr, nqn: &str, subtype: u8) -> Self {
        let ip = address.ip().to_canonical();
        let mut record = Self::zeroed();
        record.set_trtype(TRANSPORT_TCP).set_adrfam(if ip.is_ipv4() { 1 } else { 2 });
        record.set_subtype(subtype).set_treq(TREQ_NOT_REQUIRED).set_portid(1);
        record.set_cntlid(CNTLID_DYNAMIC).set_asqsz(ADMIN_ENTRIES);
        record.set_trsvcid(&fixed_text(&address.port().to_string(), b' '));
        record.set_subnqn(&fixed_text(nqn, 0));
        record.set_traddr(&fixed_text(&ip.to_string(), b' '));
        if subtype == SUBTYPE_CURRENT_DISCOVERY {
            record.set_eflags(EFLAG_PERSISTENT);
        }
        record
    }

    /// Returns the name of the subsystem; `None` if it is not text.
    pub fn nqn(&self) -> Option<String> {
        text_of(&self.subnqn()).map(str::to_owned)
    }

    /// Returns the address that it listens on; `None` if that is no TCP address.
    pub fn address(&self) -> Option<SocketAddr> {
        if self.trtype() != TRANSPORT_TCP {
            return None;
        }
        let ip: IpAddr = text_of(&self.traddr())?.parse().ok()?;
        let port: u16 = text_of(&self.trsvcid())?.parse().ok()?;
        Some(SocketAddr::new(ip, port))
    }
}

/// Returns the whole log page.
pub fn discovery_log(generation: u64, records: &[DiscoveryRecord]) -> Vec<u8> {
    let mut header = DiscoveryHeader::zeroed();
    let bytes = DiscoveryHeader::SIZE + records.len() * DiscoveryRecord::SIZE;
    header.set_genctr(generation).set_numrec(records.len() as u64);
    header.set_tdlpl(u32::try_from(bytes).expect("a handful of records"));
    let mut log = header.as_bytes().to_vec();
    records.iter().for_each(|record| log.extend_from_slice(record.as_bytes()));
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_where_it_came_from() {
        for text in ["10.0.0.1:4420", "[fe80::1]:8009"] {
            let address: SocketAddr = text.parse().unwrap();
            let record = DiscoveryRecord::tcp(address, "nqn.2026-11.x:y", SUBTYPE_NVM);
            assert_eq!(record.address(), Some(address));
            assert_eq!(record.nqn().as_deref(), Some("nqn.2026-11.x:y"));
        }
        let mapped: SocketAddr = "[::ffff:10.0.0.1]:4420".parse().unwrap();
        let record = DiscoveryRecord::tcp(mapped, "nqn.x", SUBTYPE_NVM);
        assert_eq!((record.adrfam(), &record.traddr()[..9]), (1, &b"10.0.0.1 "[..]));
    }
}
