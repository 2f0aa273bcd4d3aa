//! Reads the records of a discovery subsystem.
//!
//! Uses the admin queue alone. Invariant: the records are all of one generation of the log.

use std::net::SocketAddr;
use std::sync::Arc;

use csd_nvme::discovery::{DISCOVERY_NQN, DiscoveryHeader, DiscoveryRecord};
use csd_nvme::log::{LogId, get_log_page};
use csd_nvme::opcode::Csi;
use csd_reactor::Buffer;

use super::connect::admin_only;
use crate::{Address, Error, Options};

/// Maximum plausible number of records.
const RECORDS_MAX: u64 = 1024;
/// Maximum attempts to read a log that keeps changing.
const TRIES_MAX: usize = 8;

/// Returns the records of the discovery subsystem at `socket`, its own among them.
///
/// # Errors
/// As for connecting; [`Error::Protocol`] if the log is malformed, or changes at each attempt.
pub async fn discover(
    socket: SocketAddr,
    options: &Options,
) -> Result<Vec<DiscoveryRecord>, Error> {
    let address = Address::new(socket, DISCOVERY_NQN);
    let (connection, closer) = admin_only(&address, options).await?;
    let association = Arc::clone(&closer.0.drive);
    let protocol =
        |reason: &str| Error::Protocol { drive: association.clone(), reason: reason.into() };
    let read = async |bytes: u32| -> Result<Buffer, Error> {
        let sqe = get_log_page(LogId::DISCOVERY, 0, Csi::NVM, 0, bytes);
        let reply = super::admin(&closer.0, &connection, sqe, &[], bytes).await?;
        Ok(reply.data)
    };
    let head = u32::try_from(DiscoveryHeader::SIZE).expect("1024");
    for _ in 0..TRIES_MAX {
        let short = || protocol("its discovery log is shorter than asked for");
        let header = DiscoveryHeader::parse(&read(head).await?).ok_or_else(short)?;
        let count = header.numrec();
        if count > RECORDS_MAX || header.recfmt() != 0 {
            return Err(protocol("its discovery log has too many records, or another format"));
        }
        let bytes = head * (1 + u32::try_from(count).expect("at most 1024"));
        let log = read(bytes).await?;
        let whole = DiscoveryHeader::parse(&log).ok_or_else(short)?;
        if (whole.genctr(), whole.numrec()) != (header.genctr(), count) {
            continue;
        }
        let records: Vec<DiscoveryRecord> = log[DiscoveryHeader::SIZE..]
            .as_chunks::<{ DiscoveryRecord::SIZE }>()
            .0
            .iter()
            .map(|bytes| DiscoveryRecord::from_bytes(*bytes))
            .collect();
        if records.len() as u64 != count {
            return Err(short());
        }
        return Ok(records);
    }
    Err(protocol("its discovery log changes all the time"))
}
