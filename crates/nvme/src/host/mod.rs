//! The host's side above the transport: command identifiers, expected data, completions.
//!
//! Does no I/O, owns no buffers and retries nothing. Invariants: data and transfer requests of a
//! controller are accepted only for a command in flight, in order and within the buffer that the
//! command named; a command completes once.

pub mod queue;

use crate::fabrics::{CNTLID_DYNAMIC, ConnectData};
use crate::wire::fixed_text;

/// Returns the data of Connect. `cntlid` is `None` on the admin queue.
pub fn connect_data(
    hostid: &[u8; 16],
    hostnqn: &str,
    subnqn: &str,
    cntlid: Option<u16>,
) -> ConnectData {
    let mut data = ConnectData::zeroed();
    data.set_hostid(hostid).set_cntlid(cntlid.unwrap_or(CNTLID_DYNAMIC));
    data.set_subnqn(&fixed_text(subnqn, 0)).set_hostnqn(&fixed_text(hostnqn, 0));
    data
}
