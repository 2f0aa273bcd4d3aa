//! Sockets of the operating system, TCP and Unix, as one type each for listening and for streams.
//!
//! Invariants: every socket is close-on-exec and non-blocking; the file of a Unix socket has mode
//! 0600 from its first moment, and goes when its listener is closed.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::mem;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use libc::socklen_t;

use super::os::{self, check};
use crate::endpoint::Endpoint;

/// Permissions of the file of a Unix socket: connecting to it takes the right to write.
const UNIX_MODE: libc::mode_t = 0o600;

/// A socket that listens.
pub(crate) enum ListeningSocket {
    Tcp(TcpListener),
    Unix(UnixDoor),
}

/// A Unix socket that listens, and its file.
pub(crate) struct UnixDoor {
    listener: UnixListener,
    path: PathBuf,
    /// Device and number of the file: another process may have put its own in this place.
    file: (u64, u64),
}

/// A connected socket, a device that carries packets, or a descriptor that is only watched.
pub(crate) enum StreamSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Device(File),
    Watched(OwnedFd),
}

impl ListeningSocket {
    pub(crate) fn listen(at: &Endpoint) -> io::Result<Self> {
        match at {
            Endpoint::Ip(addr) => os::listen(*addr).map(Self::Tcp),
            Endpoint::Unix(path) => UnixDoor::listen(path).map(Self::Unix),
        }
    }

    /// Accepts a connection; `None` if none is pending.
    pub(crate) fn accept(&self) -> io::Result<Option<(StreamSocket, Endpoint)>> {
        match self {
            Self::Tcp(listener) => {
                let Some((stream, peer)) = os::accept(listener)? else { return Ok(None) };
                stream.set_nodelay(true)?;
                Ok(Some((StreamSocket::Tcp(stream), Endpoint::Ip(peer))))
            }
            Self::Unix(door) => door.accept(),
        }
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr(),
            Self::Unix(_) => Err(no_address()),
        }
    }
}

impl AsRawFd for ListeningSocket {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tcp(listener) => listener.as_raw_fd(),
            Self::Unix(door) => door.listener.as_raw_fd(),
        }
    }
}

impl UnixDoor {
    fn listen(path: &Path) -> io::Result<Self> {
        let (address, length) = unix_address(path)?;
        let socket = unix_socket()?;
        let fd = socket.as_raw_fd();
        // Linux gives the file the mode of its socket, so it is never open to others.
        // SAFETY: no pointers, and a live descriptor.
        check(unsafe { libc::fchmod(fd, UNIX_MODE) })?;
        // SAFETY: the pointer is to a live address of the size given.
        let bind = || check(unsafe { libc::bind(fd, (&raw const address).cast(), length) });
        match bind() {
            Err(error) if error.kind() == ErrorKind::AddrInUse && remove_dead(path)? => {
                bind()?;
            }
            bound => {
                bound?;
            }
        }
        // SAFETY: a live descriptor.
        check(unsafe { libc::listen(fd, os::BACKLOG) })?;
        let metadata = fs::symlink_metadata(path)?;
        let file = (metadata.dev(), metadata.ino());
        Ok(Self { listener: UnixListener::from(socket), path: path.to_owned(), file })
    }

    fn accept(&self) -> io::Result<Option<(StreamSocket, Endpoint)>> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    let peer = Endpoint::Unix(self.path.clone());
                    return Ok(Some((StreamSocket::Unix(stream), peer)));
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(None),
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    _ => return Err(error),
                },
            }
        }
    }
}

impl Drop for UnixDoor {
    fn drop(&mut self) {
        let is_ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == self.file);
        if is_ours {
            // A file that stays is removed by the next listener.
            let _removed = fs::remove_file(&self.path);
        }
    }
}

impl StreamSocket {
    /// Starts to connect. A Unix socket is connected, or refused, at once.
    pub(crate) fn connect(to: &Endpoint) -> io::Result<Self> {
        match to {
            Endpoint::Ip(addr) => {
                let stream = os::connect(*addr)?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
            Endpoint::Unix(path) => unix_connect(path).map(Self::Unix),
        }
    }

    pub(crate) fn recv(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => (&mut &*stream).read(into),
            Self::Unix(stream) => (&mut &*stream).read(into),
            Self::Device(device) => (&mut &*device).read(into),
            Self::Watched(_) => Err(ErrorKind::WouldBlock.into()),
        }
    }

    pub(crate) fn send(&self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Device(device) => (&mut &*device).write_vectored(from),
            Self::Watched(_) => Err(ErrorKind::WouldBlock.into()),
            _ => os::send(self.as_raw_fd(), from),
        }
    }

    /// Returns true if a transfer is one packet, so that a short one leaves others behind.
    pub(crate) fn is_of_packets(&self) -> bool {
        matches!(self, Self::Device(_))
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(how),
            Self::Unix(stream) => stream.shutdown(how),
            Self::Device(_) | Self::Watched(_) => Err(no_address()),
        }
    }

    /// Returns the outcome of a connection attempt that is over.
    pub(crate) fn connected(&self) -> io::Result<()> {
        let (error, peer) = match self {
            Self::Tcp(stream) => (stream.take_error()?, stream.peer_addr().map(drop)),
            Self::Unix(stream) => (stream.take_error()?, stream.peer_addr().map(drop)),
            Self::Device(_) | Self::Watched(_) => (None, Ok(())),
        };
        error.map_or(peer, Err)
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp()?.local_addr()
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.tcp()?.peer_addr()
    }

    fn tcp(&self) -> io::Result<&TcpStream> {
        match self {
            Self::Tcp(stream) => Ok(stream),
            Self::Unix(_) | Self::Device(_) | Self::Watched(_) => Err(no_address()),
        }
    }
}

impl AsRawFd for StreamSocket {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
            Self::Device(device) => device.as_raw_fd(),
            Self::Watched(fd) => fd.as_raw_fd(),
        }
    }
}

/// Returns the error for the Internet address of a Unix socket or a device.
pub(crate) fn no_address() -> io::Error {
    io::Error::new(ErrorKind::Unsupported, "only a TCP socket has an Internet address")
}

fn unix_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers; the descriptor returned is new and ours alone.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::socket(libc::AF_UNIX, kind, 0))?)) }
}

#[allow(clippy::unnecessary_cast, reason = "the sign of the type differs by platform")]
fn unix_address(path: &Path) -> io::Result<(libc::sockaddr_un, socklen_t)> {
    // SAFETY: zeros are a valid address.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    let bytes = path.as_os_str().as_bytes();
    // With the zero byte that ends it.
    if bytes.is_empty() || bytes.len() >= address.sun_path.len() || bytes.contains(&0) {
        let most = address.sun_path.len() - 1;
        let why = format!("the path of a Unix socket has 1 to {most} bytes, and no zero byte");
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    address.sun_family = os::family_of(libc::AF_UNIX);
    for (to, byte) in address.sun_path.iter_mut().zip(bytes) {
        *to = *byte as libc::c_char;
    }
    let length = mem::offset_of!(libc::sockaddr_un, sun_path) + bytes.len() + 1;
    Ok((address, socklen_t::try_from(length).map_err(io::Error::other)?))
}

fn unix_connect(path: &Path) -> io::Result<UnixStream> {
    let (address, length) = unix_address(path)?;
    let socket = unix_socket()?;
    loop {
        // SAFETY: the pointer is to a live address of the size given.
        let connected = check(unsafe {
            libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length)
        });
        match connected {
            Ok(_) => return Ok(UnixStream::from(socket)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The listener's backlog is full, which TCP reports as a refusal, too.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(ErrorKind::ConnectionRefused.into());
            }
            Err(error) => return Err(error),
        }
    }
}

/// Removes a Unix socket's file that no process listens at; returns true if it did. A process that
/// does listen sees a connection that ends at once.
fn remove_dead(path: &Path) -> io::Result<bool> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return Ok(false);
    }
    match unix_connect(path) {
        Err(error) if error.raw_os_error() == Some(libc::ECONNREFUSED) => {
            fs::remove_file(path).map(|()| true)
        }
        _ => Ok(false),
    }
}
