//! [`Address`]: `nvme+tcp://host:port/NQN?nsid=2`.
//!
//! Names are resolved when the text is parsed, which may block: parse before a core starts.
//! Invariant: an address that was parsed prints as one that parses to the same.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use csd_nvme::controller::connect::is_nqn;

use crate::Error;

const SCHEME: &str = "nvme+tcp://";

/// Address and name of a drive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// Socket address that it listens on.
    pub socket: SocketAddr,
    /// NVMe Qualified Name of its subsystem.
    pub nqn: String,
    /// Namespace, if the address names one.
    pub nsid: Option<u32>,
}

impl Address {
    /// Returns the address of a subsystem, without a namespace.
    #[must_use]
    pub fn new(socket: SocketAddr, nqn: &str) -> Self {
        Self { socket, nqn: nqn.to_owned(), nsid: None }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.socket, self.nqn)?;
        self.nsid.map_or(Ok(()), |nsid| write!(f, "?nsid={nsid}"))
    }
}

impl FromStr for Address {
    type Err = Error;

    /// Parses and resolves; the port defaults to 4420.
    ///
    /// # Errors
    /// [`Error::BadAddress`] with the reason.
    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).map_err(|reason| Error::BadAddress { text: text.to_owned(), reason })
    }
}

fn parse(text: &str) -> Result<Address, String> {
    let rest = text.strip_prefix(SCHEME).ok_or(format!("it does not begin with {SCHEME}"))?;
    let (authority, path) =
        rest.split_once('/').ok_or("there is no /NQN after the host and port")?;
    let (nqn, query) = match path.split_once('?') {
        Some((nqn, query)) => (nqn, Some(query)),
        None => (path, None),
    };
    if !is_nqn(nqn) {
        return Err(format!("{nqn:?} is not an NVMe Qualified Name (nqn.yyyy-mm.domain:name)"));
    }
    let nsid = query.map(namespace).transpose()?;
    Ok(Address { socket: resolve(authority)?, nqn: nqn.to_owned(), nsid })
}

fn namespace(query: &str) -> Result<u32, String> {
    let value = query.strip_prefix("nsid=").ok_or(format!("{query:?} is not nsid=NUMBER"))?;
    match value.parse() {
        Ok(nsid) if nsid > 0 && nsid < csd_nvme::NSID_ALL - 1 => Ok(nsid),
        _ => Err(format!("{value:?} is not a namespace id")),
    }
}

fn resolve(authority: &str) -> Result<SocketAddr, String> {
    // A colon inside brackets belongs to an IPv6 address, not to a port.
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            (host, port.parse().map_err(|_| format!("{port:?} is not a port"))?)
        }
        _ => (authority, csd_nvme::PORT),
    };
    if host.is_empty() {
        return Err("there is no host".to_owned());
    }
    let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let mut found = (name, port).to_socket_addrs().map_err(|error| format!("{name:?}: {error}"))?;
    found.next().ok_or_else(|| format!("{name:?} has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NQN: &str = "nqn.2026-11.io.csdstore:d0";

    #[test]
    fn addresses_round_trip_and_the_port_defaults() {
        for (text, socket, nsid) in [
            (format!("nvme+tcp://127.0.0.1:4421/{NQN}?nsid=2"), "127.0.0.1:4421", Some(2)),
            (format!("nvme+tcp://127.0.0.1/{NQN}"), "127.0.0.1:4420", None),
            (format!("nvme+tcp://[::1]/{NQN}"), "[::1]:4420", None),
            (format!("nvme+tcp://[::1]:7/{NQN}?nsid=1"), "[::1]:7", Some(1)),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.socket, socket.parse().unwrap(), "{text}");
            assert_eq!((address.nqn.as_str(), address.nsid), (NQN, nsid));
            assert_eq!(address.to_string().parse::<Address>().unwrap(), address);
        }
        let named: Address = format!("nvme+tcp://localhost:9/{NQN}").parse().unwrap();
        assert!(named.socket.ip().is_loopback() && named.socket.port() == 9);
    }

    #[test]
    fn wrong_addresses_say_what_is_wrong() {
        for (text, words) in [
            (format!("tcp://127.0.0.1/{NQN}"), "does not begin with nvme+tcp://"),
            ("nvme+tcp://127.0.0.1:4420".to_owned(), "no /NQN"),
            ("nvme+tcp://127.0.0.1/drive".to_owned(), "\"drive\" is not an NVMe Qualified Name"),
            (format!("nvme+tcp:///{NQN}"), "no host"),
            (format!("nvme+tcp://:4420/{NQN}"), "no host"),
            (format!("nvme+tcp://127.0.0.1:99999/{NQN}"), "\"99999\" is not a port"),
            (format!("nvme+tcp://127.0.0.1/{NQN}?nsid=0"), "\"0\" is not a namespace id"),
            (format!("nvme+tcp://127.0.0.1/{NQN}?ns=1"), "is not nsid=NUMBER"),
        ] {
            let message = text.parse::<Address>().unwrap_err().to_string();
            assert!(message.contains(words) && message.contains(&text), "{message}");
        }
    }
}
