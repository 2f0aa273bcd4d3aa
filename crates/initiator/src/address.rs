//! [`Address`]: `nvme+tcp://host:port/NQN?nsid=2`, or `nvme+unix:///path/of/socket/NQN?nsid=2`.
//!
//! Names are resolved when the text is parsed, which may block: parse before a core starts.
//! Invariant: an address that was parsed prints as one that parses to the same.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use csd_nvme::controller::connect::is_nqn;
use csd_reactor::Endpoint;

use crate::Error;

const TCP: &str = "nvme+tcp://";
const UNIX: &str = "nvme+unix://";
/// Start of the NQN after the path of a Unix socket.
const NQN_START: &str = "/nqn.";

/// Longest path of a Unix socket that Linux takes, bytes.
const UNIX_BYTES_MAX: usize = 107;

/// Address and name of a drive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// Socket address that it listens on.
    pub socket: Endpoint,
    /// NVMe Qualified Name of its subsystem.
    pub nqn: String,
    /// Namespace, if the address names one.
    pub nsid: Option<u32>,
}

impl Address {
    /// Returns the address of a subsystem, without a namespace.
    #[must_use]
    pub fn new(socket: impl Into<Endpoint>, nqn: &str) -> Self {
        Self { socket: socket.into(), nqn: nqn.to_owned(), nsid: None }
    }

    /// Checks that an address can name a Unix socket of this path.
    ///
    /// # Errors
    /// The reason.
    pub fn check_unix(path: &Path) -> Result<(), String> {
        let text = path.to_str().ok_or("the path of a Unix socket is UTF-8 here")?;
        if !text.starts_with('/') || text.len() < 2 {
            return Err("the path of a Unix socket begins with /".to_owned());
        }
        if text.contains(NQN_START) {
            return Err(format!(
                "no part of the path of a Unix socket begins with {:?}",
                &NQN_START[1..]
            ));
        }
        if text.len() > UNIX_BYTES_MAX {
            return Err(format!("the path of a Unix socket has at most {UNIX_BYTES_MAX} bytes"));
        }
        Ok(())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.socket.ip().is_some() { TCP } else { UNIX };
        write!(f, "{scheme}{}/{}", self.socket, self.nqn)?;
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
    let (socket, path) = match (text.strip_prefix(TCP), text.strip_prefix(UNIX)) {
        (Some(rest), _) => {
            rest.split_once('/').ok_or("there is no /NQN after the host and port")?
        }
        (_, Some(rest)) => {
            let end =
                rest.find(NQN_START).ok_or("there is no /NQN after the path of the socket")?;
            (&rest[..end], &rest[end + 1..])
        }
        _ => return Err(format!("it does not begin with {TCP} or {UNIX}")),
    };
    let (nqn, query) = match path.split_once('?') {
        Some((nqn, query)) => (nqn, Some(query)),
        None => (path, None),
    };
    if !is_nqn(nqn) {
        return Err(format!("{nqn:?} is not an NVMe Qualified Name (nqn.yyyy-mm.domain:name)"));
    }
    let nsid = query.map(namespace).transpose()?;
    let socket = if text.starts_with(UNIX) {
        Address::check_unix(Path::new(socket))?;
        Endpoint::Unix(PathBuf::from(socket))
    } else {
        Endpoint::Ip(resolve(socket)?)
    };
    Ok(Address { socket, nqn: nqn.to_owned(), nsid })
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
            assert_eq!(address.socket.ip(), Some(socket.parse().unwrap()), "{text}");
            assert_eq!((address.nqn.as_str(), address.nsid), (NQN, nsid));
            assert_eq!(address.to_string().parse::<Address>().unwrap(), address);
        }
        let named: Address = format!("nvme+tcp://localhost:9/{NQN}").parse().unwrap();
        assert!(named.socket.is_local() && named.socket.ip().unwrap().port() == 9);
    }

    #[test]
    fn a_unix_socket_is_named_by_its_path() {
        let text = format!("nvme+unix:///run/d 0?.sock/{NQN}/x?nsid=1");
        let address: Address = text.parse().unwrap();
        assert_eq!(address.socket, Endpoint::Unix("/run/d 0?.sock".into()));
        assert_eq!((address.nqn, address.nsid), (format!("{NQN}/x"), Some(1)));
        let again: Address = text.parse().unwrap();
        assert_eq!(again.to_string(), text);
    }

    #[test]
    fn wrong_addresses_say_what_is_wrong() {
        for (text, words) in [
            (format!("tcp://127.0.0.1/{NQN}"), "does not begin with nvme+tcp:// or nvme+unix://"),
            (format!("nvme+unix://run/d.sock/{NQN}"), "begins with /"),
            (format!("nvme+unix:///{NQN}"), "begins with /"),
            ("nvme+unix:///run/d.sock".to_owned(), "no /NQN after the path"),
            (format!("nvme+unix:///{}/{NQN}", "x".repeat(107)), "at most 107 bytes"),
            (format!("nvme+unix:///run/d.sock/{NQN}?nsid=0"), "\"0\" is not a namespace id"),
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
