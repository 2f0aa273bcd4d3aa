//! [`Address`]: `nvme+tcp://host:port/NQN?nsid=2`, or `nvme+unix:///path/of/socket/NQN?nsid=2`.
//!
//! Names are resolved when the text is parsed, which may block: parse before a core starts.
//! Invariant: an address that was parsed prints as one that parses to the same.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
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
    /// Socket address that it listens on, the first one of a name.
    pub socket: Endpoint,
    /// NVMe Qualified Name of its subsystem.
    pub nqn: String,
    /// Namespace, if the address names one.
    pub nsid: Option<u32>,
    /// Of a name with several addresses: the name and the port, and the addresses after `socket`
    /// in the order of the resolver.
    pub named: Option<(String, Vec<SocketAddr>)>,
}

impl Address {
    /// Returns the address of a subsystem, without a namespace.
    #[must_use]
    pub fn new(socket: impl Into<Endpoint>, nqn: &str) -> Self {
        Self { socket: socket.into(), nqn: nqn.to_owned(), nsid: None, named: None }
    }

    /// Returns all socket addresses, in the order in which they are tried.
    #[must_use]
    pub fn sockets(&self) -> Vec<Endpoint> {
        let further = self.named.iter().flat_map(|(_, further)| further);
        let further = further.map(|socket| Endpoint::Ip(*socket));
        std::iter::once(self.socket.clone()).chain(further).collect()
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
        match &self.named {
            // One of several addresses would not say the same.
            Some((name, _)) => write!(f, "{scheme}{name}/{}", self.nqn)?,
            None => write!(f, "{scheme}{}/{}", self.socket, self.nqn)?,
        }
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
    if text.starts_with(UNIX) {
        Address::check_unix(Path::new(socket))?;
        return Ok(Address { nsid, ..Address::new(Path::new(socket), nqn) });
    }
    let mut found = resolve(socket)?;
    let first = found.remove(0);
    let named = (!found.is_empty()).then(|| (with_port(socket, first.port()), found));
    Ok(Address { socket: Endpoint::Ip(first), nqn: nqn.to_owned(), nsid, named })
}

/// Returns a name with a port.
fn with_port(authority: &str, port: u16) -> String {
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    if has_port { authority.to_owned() } else { format!("{authority}:{port}") }
}

fn namespace(query: &str) -> Result<u32, String> {
    let value = query.strip_prefix("nsid=").ok_or(format!("{query:?} is not nsid=NUMBER"))?;
    match value.parse() {
        Ok(nsid) if nsid > 0 && nsid < csd_nvme::NSID_ALL - 1 => Ok(nsid),
        _ => Err(format!("{value:?} is not a namespace id")),
    }
}

/// Returns the addresses of `HOST:PORT`, at least one, in the order of the resolver; the port
/// defaults to 4420. The host is a name, an IPv4 address, or an IPv6 address in brackets, with a
/// zone such as `[fe80::1%eth0]` if it is of one link.
///
/// # Errors
/// The reason.
pub fn resolve(authority: &str) -> Result<Vec<SocketAddr>, String> {
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
    let all = (name, port).to_socket_addrs().map_err(|error| format!("{name:?}: {error}"))?;
    let mut found = Vec::new();
    for address in all {
        if !found.contains(&address) {
            found.push(address);
        }
    }
    if found.is_empty() { Err(format!("{name:?} has no address")) } else { Ok(found) }
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
        for socket in named.sockets() {
            assert!(socket.is_local() && socket.ip().unwrap().port() == 9);
        }
        assert_eq!(named.to_string().parse::<Address>().unwrap(), named);
    }

    #[test]
    fn an_address_of_one_link_has_a_zone() {
        let text = format!("nvme+tcp://[fe80::1%lo]:7/{NQN}");
        let address: Address = text.parse().unwrap();
        let Some(SocketAddr::V6(socket)) = address.socket.ip() else { panic!("{address}") };
        assert!(socket.scope_id() > 0 && socket.port() == 7);
        assert_eq!(address.to_string().parse::<Address>().unwrap(), address);
    }

    #[test]
    fn a_name_of_several_addresses_prints_as_the_name() {
        let sockets = ["[::1]:7".parse().unwrap(), "127.0.0.1:7".parse().unwrap()];
        let address = Address {
            named: Some(("d0.lan:7".to_owned(), vec![sockets[1]])),
            ..Address::new(sockets[0], NQN)
        };
        assert_eq!(address.to_string(), format!("nvme+tcp://d0.lan:7/{NQN}"));
        assert_eq!(address.sockets(), sockets.map(Endpoint::Ip));
        assert_eq!(with_port("d0.lan", 4420), "d0.lan:4420");
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
