//! Addresses of the simulated network: ports of machines, and paths on a machine.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;

use super::state::State;
use crate::endpoint::Endpoint;

impl State {
    /// Returns the address that a socket listens on when it is bound to `at`.
    pub(crate) fn listening(&mut self, machine: usize, at: &Endpoint) -> io::Result<Endpoint> {
        let Some(addr) = at.ip() else { return Ok(at.clone()) };
        let ours = IpAddr::V4(self.machines[machine].ip);
        if !(addr.ip() == ours || addr.ip().is_unspecified() || addr.ip().is_loopback()) {
            return Err(ErrorKind::AddrNotAvailable.into());
        }
        let port = if addr.port() == 0 { self.free_port(machine) } else { addr.port() };
        Ok(SocketAddr::new(addr.ip(), port).into())
    }

    /// Returns the address of a client that connects to `to`, and the machine that it reaches.
    pub(crate) fn route(&mut self, machine: usize, to: &Endpoint) -> (Endpoint, Option<usize>) {
        let Some(addr) = to.ip() else { return (to.clone(), Some(machine)) };
        let ours = IpAddr::V4(self.machines[machine].ip);
        let local = SocketAddr::new(ours, self.free_port(machine)).into();
        let to_self = addr.ip().is_loopback() || addr.ip().is_unspecified();
        (local, if to_self { Some(machine) } else { self.machine_at(addr.ip()) })
    }

    /// Returns the next free dynamic port, in a cycle.
    fn free_port(&mut self, machine: usize) -> u16 {
        let last = &mut self.machines[machine].last_port;
        *last = if *last == u16::MAX { 49_152 } else { *last + 1 };
        *last
    }
}

/// Returns a number for the trace: the port, or a sum over the path.
pub(super) fn number(endpoint: &Endpoint) -> u64 {
    match endpoint {
        Endpoint::Ip(addr) => addr.port().into(),
        Endpoint::Unix(path) => path
            .as_os_str()
            .as_bytes()
            .iter()
            .fold(1, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add((*byte).into())),
    }
}
