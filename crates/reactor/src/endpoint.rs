//! [`Endpoint`]: the address of a socket that listens, on a network or on this machine.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Address of a socket that listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// TCP: an Internet address and a port.
    Ip(SocketAddr),
    /// Unix socket: the path of its file. Only processes of this machine reach it.
    Unix(PathBuf),
}

impl Endpoint {
    /// Returns the Internet address, if it is one.
    #[must_use]
    pub fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(addr) => Some(*addr),
            Self::Unix(_) => None,
        }
    }

    /// Returns the path of a Unix socket.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Ip(_) => None,
            Self::Unix(path) => Some(path),
        }
    }

    /// Returns true if it is reached from this machine only: a loopback address, or a Unix socket.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.ip().is_none_or(|addr| addr.ip().is_loopback())
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(addr: SocketAddr) -> Self {
        Self::Ip(addr)
    }
}

impl From<&Path> for Endpoint {
    fn from(path: &Path) -> Self {
        Self::Unix(path.to_owned())
    }
}

impl From<&Endpoint> for Endpoint {
    fn from(endpoint: &Endpoint) -> Self {
        endpoint.clone()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(addr) => addr.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}
