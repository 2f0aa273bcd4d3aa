//! Back end of real cores: sockets of the operating system over a [`Poller`].
//!
//! Only [`Backend::poll`] waits. Invariants: a refused or short transfer clears readiness, and only
//! a later event of the poller sets it, so no wake-up is lost; a key is never reused.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use std::task::{Poll, Waker};

use crate::backend::poller::{Event, Poller};
use crate::backend::socket::{ListeningSocket, StreamSocket};
use crate::backend::{Backend, Detached, Direction, SocketKey, os};
use crate::class::Class;
use crate::compute_thread::{ComputeLoad, ComputeThreads, ErasedJob};
use crate::endpoint::Endpoint;
use crate::file::{FileDone, FileOp};
use crate::instant::{Instant, nanos};
use crate::oneshot::Sender;

enum Handle {
    Listener(ListeningSocket),
    Stream(StreamSocket),
    Stop(os::EventFd),
}

impl Handle {
    fn fd(&self) -> RawFd {
        match self {
            Self::Listener(listener) => listener.as_raw_fd(),
            Self::Stream(stream) => stream.as_raw_fd(),
            Self::Stop(event) => event.as_raw_fd(),
        }
    }
}

/// State of one direction of a socket.
#[derive(Default)]
struct Side {
    ready: bool,
    /// True if this direction stays ready, even after a short transfer.
    closed: bool,
    armed: bool,
    waker: Option<Waker>,
}

struct Socket {
    handle: Handle,
    /// Indexed by [`Direction`]: read, write.
    sides: [Side; 2],
}

#[derive(Default)]
struct Slot {
    generation: u32,
    socket: Option<Socket>,
}

/// Table of sockets. A key holds an index of 32 bits and a generation of 30, because `uring` needs
/// two bits of a word.
#[derive(Default)]
struct Sockets {
    slots: Vec<Slot>,
    vacant: Vec<u32>,
}

const GENERATION_MASK: u32 = (1 << 30) - 1;

impl Sockets {
    fn insert(&mut self, socket: Socket) -> SocketKey {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            u32::try_from(self.slots.len() - 1).expect("descriptors are below 2^31")
        });
        let slot = &mut self.slots[index as usize];
        slot.socket = Some(socket);
        SocketKey(u64::from(slot.generation) << 32 | u64::from(index))
    }

    fn slot(&mut self, key: SocketKey) -> Option<&mut Slot> {
        let index = usize::try_from(key.0 & u64::from(u32::MAX)).ok()?;
        let slot = self.slots.get_mut(index)?;
        (u64::from(slot.generation) == key.0 >> 32).then_some(slot)
    }

    fn live(&mut self, key: SocketKey) -> Option<&mut Socket> {
        self.slot(key)?.socket.as_mut()
    }

    fn remove(&mut self, key: SocketKey) -> Option<Socket> {
        let slot = self.slot(key)?;
        let socket = slot.socket.take()?;
        slot.generation = (slot.generation + 1) & GENERATION_MASK;
        self.vacant.push(u32::try_from(key.0 & u64::from(u32::MAX)).ok()?);
        Some(socket)
    }
}

pub(crate) struct Real<P> {
    started: std::time::Instant,
    poller: P,
    sockets: RefCell<Sockets>,
    /// Buffer reused between polls.
    events: RefCell<Vec<Event>>,
    compute: ComputeThreads,
    stop: Cell<Option<SocketKey>>,
    stop_wakers: RefCell<Vec<Waker>>,
}

impl<P: Poller> Real<P> {
    /// Makes a back end; `started` is the runtime's zero of time.
    pub(crate) fn new(poller: P, started: std::time::Instant, compute: ComputeThreads) -> Self {
        Self {
            started,
            poller,
            sockets: RefCell::default(),
            events: RefCell::default(),
            compute,
            stop: Cell::new(None),
            stop_wakers: RefCell::default(),
        }
    }

    /// Adds a socket. `ready`: true if the first transfer may be tried before any event.
    fn add(&self, handle: Handle, ready: bool) -> io::Result<SocketKey> {
        let fd = handle.fd();
        let side = || Side { ready, ..Side::default() };
        let socket = Socket { handle, sides: [side(), side()] };
        let key = self.sockets.borrow_mut().insert(socket);
        if let Err(error) = self.poller.add(key, fd) {
            self.sockets.borrow_mut().remove(key);
            return Err(error);
        }
        Ok(key)
    }

    fn remove(&self, key: SocketKey) -> Option<Handle> {
        let socket = self.sockets.borrow_mut().remove(key)?;
        let armed = [socket.sides[0].armed, socket.sides[1].armed];
        self.poller.remove(key, socket.handle.fd(), armed);
        Some(socket.handle)
    }

    fn with_socket<T>(
        &self,
        key: SocketKey,
        act: impl FnOnce(&mut Socket) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut sockets = self.sockets.borrow_mut();
        act(sockets.live(key).ok_or_else(not_open)?)
    }

    /// Tries a transfer of up to `wanted` bytes. A transfer that is refused, or short on a stream,
    /// has emptied (or filled) the socket's buffer, so readiness is cleared: another try would be a
    /// wasted call.
    fn transfer(
        &self,
        key: SocketKey,
        direction: Direction,
        wanted: usize,
        mut act: impl FnMut(&StreamSocket) -> io::Result<usize>,
    ) -> io::Result<Option<usize>> {
        self.with_socket(key, |socket| {
            let Handle::Stream(stream) = &socket.handle else { return Err(not_open()) };
            let side = &mut socket.sides[direction as usize];
            if !side.ready {
                arm(&self.poller, key, stream.as_raw_fd(), side, direction)?;
                return Ok(None);
            }
            loop {
                match act(stream) {
                    Ok(count) => {
                        let whole = count == 0 || count == wanted || stream.is_of_packets();
                        side.ready = whole || side.closed;
                        return Ok(Some(count));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        (side.ready, side.closed) = (false, false);
                        return Ok(None);
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        })
    }

    /// Applies an event; collects the wakers to call.
    fn apply(&self, event: Event, woken: &mut Vec<Waker>) {
        let mut sockets = self.sockets.borrow_mut();
        let Some(socket) = sockets.live(event.key) else { return };
        let seen = [(event.readable, event.read_closed), (event.writable, event.write_closed)];
        for (side, (ready, closed)) in socket.sides.iter_mut().zip(seen) {
            side.closed |= closed;
            if ready {
                side.ready = true;
                side.armed = false;
                woken.extend(side.waker.take());
            }
        }
        if self.stop.get() == Some(event.key) {
            woken.append(&mut self.stop_wakers.borrow_mut());
        }
    }
}

/// Arms a direction if it is not armed.
fn arm<P: Poller>(
    poller: &P,
    key: SocketKey,
    fd: RawFd,
    side: &mut Side,
    direction: Direction,
) -> io::Result<()> {
    if !side.armed {
        poller.arm(key, fd, direction)?;
        side.armed = true;
    }
    Ok(())
}

fn not_open() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the socket is not open on this core")
}

impl<P: Poller> Backend for Real<P> {
    fn name(&self) -> &'static str {
        self.poller.name()
    }

    fn now(&self) -> Instant {
        Instant::from_ns(nanos(self.started.elapsed()))
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the kernel's random source is always there on Linux");
    }

    fn bind(&self, at: &Endpoint) -> io::Result<SocketKey> {
        self.add(Handle::Listener(ListeningSocket::listen(at)?), true)
    }

    fn accept(&self, key: SocketKey) -> io::Result<Option<(SocketKey, Endpoint)>> {
        let accepted = self.with_socket(key, |socket| {
            let Handle::Listener(listener) = &socket.handle else { return Err(not_open()) };
            let accepted = listener.accept()?;
            if accepted.is_none() {
                socket.sides[0].ready = false;
            }
            Ok(accepted)
        })?;
        let Some((stream, peer)) = accepted else { return Ok(None) };
        Ok(Some((self.add(Handle::Stream(stream), true)?, peer)))
    }

    fn connect(&self, to: &Endpoint) -> io::Result<SocketKey> {
        self.add(Handle::Stream(StreamSocket::connect(to)?), false)
    }

    fn connected(&self, key: SocketKey) -> io::Result<()> {
        self.with_socket(key, |socket| {
            let Handle::Stream(stream) = &socket.handle else { return Err(not_open()) };
            stream.connected()
        })
    }

    fn try_recv(&self, key: SocketKey, into: &mut [u8]) -> io::Result<Option<usize>> {
        self.transfer(key, Direction::Read, into.len(), |stream| stream.recv(into))
    }

    fn try_send(&self, key: SocketKey, from: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        let from = &from[..from.len().min(libc::UIO_MAXIOV as usize)];
        let wanted = from.iter().map(|slice| slice.len()).sum();
        self.transfer(key, Direction::Write, wanted, |stream| stream.send(from))
    }

    fn poll_ready(
        &self,
        key: SocketKey,
        direction: Direction,
        waker: &Waker,
    ) -> Poll<io::Result<()>> {
        let polled = self.with_socket(key, |socket| {
            let side = &mut socket.sides[direction as usize];
            if side.ready {
                return Ok(Poll::Ready(()));
            }
            match &mut side.waker {
                Some(old) => old.clone_from(waker),
                None => side.waker = Some(waker.clone()),
            }
            arm(&self.poller, key, socket.handle.fd(), side, direction)?;
            Ok(Poll::Pending)
        });
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn shutdown(&self, key: SocketKey, how: Shutdown) -> io::Result<()> {
        self.with_socket(key, |socket| match &socket.handle {
            Handle::Stream(stream) => stream.shutdown(how),
            _ => Err(not_open()),
        })
    }

    fn local_addr(&self, key: SocketKey) -> io::Result<SocketAddr> {
        self.with_socket(key, |socket| match &socket.handle {
            Handle::Stream(stream) => stream.local_addr(),
            Handle::Listener(listener) => listener.local_addr(),
            Handle::Stop(_) => Err(not_open()),
        })
    }

    fn peer_addr(&self, key: SocketKey) -> io::Result<SocketAddr> {
        self.with_socket(key, |socket| match &socket.handle {
            Handle::Stream(stream) => stream.peer_addr(),
            _ => Err(not_open()),
        })
    }

    fn close(&self, key: SocketKey) {
        drop(self.remove(key));
    }

    fn detach(&self, key: SocketKey) -> io::Result<Detached> {
        match self.remove(key) {
            Some(Handle::Stream(stream)) => Ok(Detached::Os(stream)),
            _ => Err(not_open()),
        }
    }

    fn attach(&self, stream: Detached) -> io::Result<SocketKey> {
        let Detached::Os(stream) = stream else { return Err(not_open()) };
        self.add(Handle::Stream(stream), true)
    }

    fn file(&self, op: Box<FileOp>, reply: Sender<FileDone>) {
        self.poller.file(op, reply);
    }

    fn compute(&self, class: Class, job: Box<dyn ErasedJob>) {
        self.compute.submit(class, job);
    }

    fn compute_long(&self, job: Box<dyn ErasedJob>) {
        self.compute.submit_long(job);
    }

    fn compute_load(&self) -> ComputeLoad {
        self.compute.load()
    }

    fn works_aside(&self) -> bool {
        self.compute.load().works || self.poller.works_aside()
    }

    fn guard_compute(&self, foreground_ns: u64) -> Option<u64> {
        self.compute.watch(self.now().ns(), foreground_ns)
    }

    fn poll_stop(&self, waker: &Waker) -> Poll<()> {
        let key = match self.stop.get() {
            Some(key) => key,
            None => {
                let added = os::stop_signal().and_then(|fd| self.add(Handle::Stop(fd), false));
                let key = added.expect("a process that may open no descriptor cannot run");
                self.stop.set(Some(key));
                key
            }
        };
        match self.poll_ready(key, Direction::Read, waker) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => {
                let mut wakers = self.stop_wakers.borrow_mut();
                if !wakers.iter().any(|known| known.will_wake(waker)) {
                    wakers.push(waker.clone());
                }
                Poll::Pending
            }
        }
    }

    fn poll(&self, wait_ns: Option<u64>) -> io::Result<()> {
        let mut events = std::mem::take(&mut *self.events.borrow_mut());
        let polled = self.poller.poll(wait_ns, &mut events);
        let mut woken = Vec::new();
        for event in events.drain(..) {
            self.apply(event, &mut woken);
        }
        *self.events.borrow_mut() = events;
        for waker in woken {
            waker.wake();
        }
        polled
    }
}
