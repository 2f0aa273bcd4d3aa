//! Sockets: [`Listener`], [`Stream`], [`DetachedStream`].
//!
//! This module owns no buffers and does not block: it tries a transfer, and awaits readiness after
//! a refusal. Invariants: a socket belongs to the core that made or attached it; each direction has
//! one waiter, the latest.

use std::fs::File;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use crate::backend::socket::StreamSocket;
use crate::backend::{Backend, Detached, Direction, SocketKey};
use crate::current::{current, try_current};
use crate::endpoint::Endpoint;

/// A socket that is closed when dropped.
struct Socket {
    backend: Rc<dyn Backend>,
    key: SocketKey,
}

impl Socket {
    fn here(make: impl FnOnce(&dyn Backend) -> io::Result<SocketKey>) -> io::Result<Self> {
        let backend = Rc::clone(&current().backend);
        let key = make(&*backend)?;
        Ok(Self { backend, key })
    }

    fn poll_ready(&self, direction: Direction, cx: &Context<'_>) -> Poll<io::Result<()>> {
        self.backend.poll_ready(self.key, direction, cx.waker())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.backend.close(self.key);
    }
}

/// A socket that accepts connections, of TCP or of this machine (Unix).
pub struct Listener(Socket);

impl Listener {
    /// Binds to `at` (port 0: any free one, with `SO_REUSEADDR`), and listens with a backlog of
    /// 1024. The file of a Unix socket gets mode 0600; one that no process listens at any more is
    /// replaced.
    ///
    /// # Errors
    /// Those of `bind(2)`, such as `AddrInUse`.
    pub fn bind(at: impl Into<Endpoint>) -> io::Result<Self> {
        let at = at.into();
        Socket::here(|backend| backend.bind(&at)).map(Self)
    }

    /// Returns the Internet address it listens on.
    ///
    /// # Errors
    /// Those of `getsockname(2)`; `Unsupported` for a Unix socket.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.backend.local_addr(self.0.key)
    }

    /// Returns the next connection and its peer's address, which for a Unix socket is the
    /// listener's path. Only one task may wait at a time.
    ///
    /// # Errors
    /// Those of `accept(2)` that concern this process, such as too many open files: pause before
    /// another try.
    pub async fn accept(&self) -> io::Result<(Stream, Endpoint)> {
        poll_fn(|cx| {
            loop {
                let backend = &self.0.backend;
                if let Some((key, peer)) = backend.accept(self.0.key)? {
                    let socket = Socket { backend: Rc::clone(backend), key };
                    return Poll::Ready(Ok((Stream(socket), peer)));
                }
                ready!(self.0.poll_ready(Direction::Read, cx))?;
            }
        })
        .await
    }
}

/// A connection of this core, over TCP or a Unix socket. Closed when dropped.
pub struct Stream(Socket);

impl Stream {
    /// Watches a device that carries packets, such as a TUN device; its descriptor is non-blocking.
    /// Each transfer is one packet. The simulation has no devices.
    ///
    /// # Errors
    /// If the kernel refuses to watch it.
    pub fn of_device(device: File) -> io::Result<Self> {
        let device = Detached::Os(StreamSocket::Device(device));
        Socket::here(|backend| backend.attach(device)).map(Self)
    }

    /// Watches a descriptor that carries nothing: a transfer is refused, and clears readiness.
    pub(crate) fn of_watched(fd: OwnedFd) -> io::Result<Self> {
        let watched = Detached::Os(StreamSocket::Watched(fd));
        Socket::here(|backend| backend.attach(watched)).map(Self)
    }

    /// Connects to `to`, over TCP with `TCP_NODELAY`.
    ///
    /// # Errors
    /// Those of `connect(2)`, such as `ConnectionRefused`.
    pub async fn connect(to: impl Into<Endpoint>) -> io::Result<Self> {
        let to = to.into();
        let stream = Self(Socket::here(|backend| backend.connect(&to))?);
        stream.writable().await?;
        stream.0.backend.connected(stream.0.key)?;
        Ok(stream)
    }

    /// Receives the available bytes. `None`: there are none, await [`Stream::readable`]; `Some(0)`:
    /// the peer will send no more (or `into` is empty).
    ///
    /// # Errors
    /// Those of `recv(2)`, such as `ConnectionReset`.
    pub fn try_recv(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        if into.is_empty() {
            return Ok(Some(0));
        }
        self.0.backend.try_recv(self.0.key, into)
    }

    /// Sends as much as there is room for, with one `sendmsg`. `None`: no room, await
    /// [`Stream::writable`].
    ///
    /// # Errors
    /// Those of `sendmsg(2)`, such as `BrokenPipe`; never a signal.
    pub fn try_send(&self, from: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        if from.iter().all(|slice| slice.is_empty()) {
            return Ok(Some(0));
        }
        self.0.backend.try_send(self.0.key, from)
    }

    /// Polls for bytes to receive: ready when [`Stream::try_recv`] may succeed; otherwise wakes
    /// `cx` when it may.
    ///
    /// # Errors
    /// If the kernel refuses to watch the socket.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_ready(Direction::Read, cx)
    }

    /// Polls for room to send: ready when [`Stream::try_send`] may succeed; otherwise wakes `cx`
    /// when it may.
    ///
    /// # Errors
    /// If the kernel refuses to watch the socket.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_ready(Direction::Write, cx)
    }

    /// Awaits [`Stream::poll_readable`].
    ///
    /// # Errors
    /// As [`Stream::poll_readable`].
    pub async fn readable(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_readable(cx)).await
    }

    /// Awaits [`Stream::poll_writable`].
    ///
    /// # Errors
    /// As [`Stream::poll_writable`].
    pub async fn writable(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_writable(cx)).await
    }

    /// Sends all of `bytes`.
    ///
    /// # Errors
    /// As [`Stream::try_send`]; some bytes may have been sent.
    pub async fn send_all(&self, bytes: &[u8]) -> io::Result<()> {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.try_send(&[IoSlice::new(&bytes[sent..])])? {
                Some(count) => sent += count,
                None => self.writable().await?,
            }
        }
        Ok(())
    }

    /// Receives until `into` is full.
    ///
    /// # Errors
    /// `UnexpectedEof` if the peer ends its stream before that, else as [`Stream::try_recv`].
    pub async fn recv_exact(&self, into: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < into.len() {
            match self.try_recv(&mut into[filled..])? {
                Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(count) => filled += count,
                None => self.readable().await?,
            }
        }
        Ok(())
    }

    /// Shuts down one direction or both.
    ///
    /// # Errors
    /// Those of `shutdown(2)`.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.backend.shutdown(self.0.key, how)
    }

    /// Returns the peer's Internet address.
    ///
    /// # Errors
    /// Those of `getpeername(2)`; `Unsupported` for a Unix socket.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.backend.peer_addr(self.0.key)
    }

    /// Returns the local Internet address.
    ///
    /// # Errors
    /// Those of `getsockname(2)`; `Unsupported` for a Unix socket.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.backend.local_addr(self.0.key)
    }

    /// Detaches the connection from this core, to be attached to another.
    #[must_use = "dropping it closes the connection"]
    pub fn detach(self) -> DetachedStream {
        DetachedStream(self.0.backend.detach(self.0.key).ok())
    }
}

/// A connection between two cores. Dropping it closes the connection.
pub struct DetachedStream(Option<Detached>);

impl DetachedStream {
    /// Attaches the connection to this core.
    ///
    /// # Errors
    /// If the kernel refuses to watch it.
    pub fn attach(mut self) -> io::Result<Stream> {
        let detached = self.0.take().ok_or(io::ErrorKind::NotConnected)?;
        Socket::here(|backend| backend.attach(detached)).map(Stream)
    }
}

impl Drop for DetachedStream {
    fn drop(&mut self) {
        // The operating system's streams close themselves; simulated ones are only numbers.
        if let (Some(Detached::Sim(key)), Some(core)) = (self.0.take(), try_current()) {
            core.backend.close(key);
        }
    }
}
