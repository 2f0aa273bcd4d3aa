//! The simulated network: TCP-like connections with latency, short segments, windows and resets.
//!
//! The network neither loses nor reorders bytes of a live connection. Invariants: bytes of one
//! direction arrive in the order in which they were sent; bytes in flight and unread never exceed
//! the window.

mod arrival;
mod partition;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::address::number;
use super::sockets::{Listener, NetEvent, Socket, Stream, not_open};
use super::state::{Event, Leftovers, State, Trace};
use crate::backend::socket::no_address;
use crate::backend::{Direction, SocketKey};
use crate::core::Core;
use crate::endpoint::Endpoint;

/// Number of lower bits of a key, the socket's number; the upper bits count detachments.
const NUMBER_BITS: u32 = 48;

impl State {
    /// Returns a one-way delay, ns.
    fn latency_ns(&mut self) -> u64 {
        let range = self.config.latency_us.clone();
        let width_ns = range.end.saturating_sub(range.start).saturating_mul(1000).max(1);
        range.start.saturating_mul(1000).saturating_add(self.random() % width_ns)
    }

    /// Sends in order with everything that the stream sent before.
    fn send_along(&mut self, from: u64, event: NetEvent) {
        let arrival_ns = self.now_ns + self.latency_ns();
        let Ok(stream) = self.net.stream(from) else { return };
        stream.last_arrival_ns = stream.last_arrival_ns.max(arrival_ns);
        let at_ns = stream.last_arrival_ns;
        self.schedule_at(at_ns, Event::Net(event));
    }

    /// Sends without regard to order: resets and credits.
    fn send_loose(&mut self, event: NetEvent) {
        let latency_ns = self.latency_ns();
        self.schedule(latency_ns, Event::Net(event));
    }

    /// Returns the key without its count of detachments, if that count is current.
    pub(crate) fn resolve(&mut self, key: SocketKey) -> io::Result<SocketKey> {
        let number = key.0 & ((1 << NUMBER_BITS) - 1);
        let detached = match self.net.sockets.get(&number) {
            Some(Socket::Stream(stream)) => stream.detached,
            Some(Socket::Listener(_)) => 0,
            None => return Err(not_open()),
        };
        if detached == key.0 >> NUMBER_BITS { Ok(SocketKey(number)) } else { Err(not_open()) }
    }

    /// Detaches a stream from its owner, who may still hold the old key; returns the new key.
    pub(crate) fn detach(&mut self, key: SocketKey) -> io::Result<SocketKey> {
        let number = self.resolve(key)?.0;
        let stream = self.net.stream(number)?;
        stream.detached += 1;
        stream.readers = [None, None];
        Ok(SocketKey(stream.detached << NUMBER_BITS | number))
    }

    pub(crate) fn bind(&mut self, machine: usize, at: &Endpoint) -> io::Result<SocketKey> {
        let at = self.listening(machine, at)?;
        if self.net.listener_at(machine, &at).is_some() {
            return Err(ErrorKind::AddrInUse.into());
        }
        self.trace(Trace::Socket, machine, 0, number(&at));
        let listener = Listener { machine, at, waiting: VecDeque::new(), waker: None };
        Ok(SocketKey(self.net.insert(Socket::Listener(listener))))
    }

    pub(crate) fn accept(&mut self, key: SocketKey) -> io::Result<Option<(SocketKey, Endpoint)>> {
        let Some(Socket::Listener(listener)) = self.net.sockets.get_mut(&key.0) else {
            return Err(not_open());
        };
        let Some(server) = listener.waiting.pop_front() else { return Ok(None) };
        let remote = self.net.stream(server)?.remote.clone().ok_or_else(not_open)?;
        Ok(Some((SocketKey(server), remote)))
    }

    pub(crate) fn connect(&mut self, machine: usize, to: &Endpoint) -> io::Result<SocketKey> {
        let (local, target) = self.route(machine, to);
        let (local, remote) = (Some(local), Some(to.clone()));
        let stream = Stream { machine, local, remote, ..Stream::default() };
        let client = self.net.insert(Socket::Stream(Box::new(stream)));
        self.trace(Trace::Socket, machine, 1, number(to));
        let to = to.clone();
        match target {
            Some(machine) => self.send_along(client, NetEvent::Connect { client, machine, to }),
            None => {
                let kind = ErrorKind::HostUnreachable;
                self.send_loose(NetEvent::Refused { client, kind });
            }
        }
        Ok(SocketKey(client))
    }

    pub(crate) fn connected(&mut self, key: SocketKey) -> io::Result<()> {
        match self.net.stream(key.0)?.take_error() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    pub(crate) fn try_recv(
        &mut self,
        key: SocketKey,
        into: &mut [u8],
    ) -> io::Result<Option<usize>> {
        let segment_max = self.config.segment_bytes_max.max(1);
        let stream = self.net.stream(key.0)?;
        let there = stream.inbound.len().min(into.len()).min(segment_max);
        if there == 0 {
            if let Some(error) = stream.take_error() {
                return Err(error);
            }
            return Ok((stream.ended || stream.broken).then_some(0));
        }
        // Half of the reads get less than there is.
        let count = if self.below(2) == 0 { 1 + self.below(there) } else { there };
        let stream = self.net.stream(key.0)?;
        take(&mut stream.inbound, &mut into[..count]);
        let (machine, peer) = (stream.machine, stream.peer);
        self.trace(Trace::Receive, machine, 0, count as u64);
        if let Some(to) = peer {
            self.send_loose(NetEvent::Credit { to, bytes: count });
        }
        Ok(Some(count))
    }

    pub(crate) fn try_send(
        &mut self,
        key: SocketKey,
        from: &[IoSlice<'_>],
    ) -> io::Result<Option<usize>> {
        let window = self.config.window_bytes;
        let stream = self.net.stream(key.0)?;
        if let Some(error) = stream.take_error() {
            return Err(error);
        }
        if stream.finished || stream.broken {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let Some(to) = stream.peer.filter(|_| stream.connected) else { return Ok(None) };
        let wanted: usize = from.iter().map(|slice| slice.len()).sum();
        let room = window.saturating_sub(stream.outstanding).min(wanted);
        if room == 0 {
            return Ok(None);
        }
        // Now and then less is taken than there is room for, as a real kernel may.
        let count = if self.below(4) == 0 { 1 + self.below(room) } else { room };
        let mut bytes = Vec::with_capacity(count);
        for slice in from {
            bytes.extend_from_slice(&slice[..slice.len().min(count - bytes.len())]);
        }
        self.trace_bytes(key.0, &bytes);
        let stream = self.net.stream(key.0)?;
        stream.outstanding += count;
        let machine = stream.machine;
        self.machines[machine].sends += 1;
        self.send_along(key.0, NetEvent::Data { to, from: key.0, bytes });
        Ok(Some(count))
    }

    fn trace_bytes(&mut self, key: u64, bytes: &[u8]) {
        self.trace(Trace::Send, 0, bytes.len(), key);
        self.fold_bytes(bytes);
    }

    pub(crate) fn poll_ready(
        &mut self,
        key: SocketKey,
        direction: Direction,
        waker: &Waker,
    ) -> Poll<io::Result<()>> {
        let window = self.config.window_bytes;
        match self.net.sockets.get_mut(&key.0) {
            None => Poll::Ready(Err(not_open())),
            Some(Socket::Listener(listener)) => {
                if !listener.waiting.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                listener.waker = Some(waker.clone());
                Poll::Pending
            }
            Some(Socket::Stream(stream)) => {
                if stream.is_ready(direction, window) {
                    return Poll::Ready(Ok(()));
                }
                match &mut stream.readers[direction as usize] {
                    Some(known) => known.clone_from(waker),
                    none => *none = Some(waker.clone()),
                }
                Poll::Pending
            }
        }
    }

    pub(crate) fn shutdown(&mut self, key: SocketKey, how: Shutdown) -> io::Result<Option<Waker>> {
        let stream = self.net.stream(key.0)?;
        if !stream.connected || stream.broken {
            return Err(not_open());
        }
        let mut woken = None;
        if how != Shutdown::Write {
            stream.ended = true;
            woken = stream.readers[Direction::Read as usize].take();
        }
        let ends = how != Shutdown::Read && !std::mem::replace(&mut stream.finished, true);
        if let Some(to) = stream.peer.filter(|_| ends) {
            self.send_along(key.0, NetEvent::Fin { to });
        }
        Ok(woken)
    }

    pub(crate) fn local_addr(&mut self, key: SocketKey) -> io::Result<SocketAddr> {
        let local = match self.net.sockets.get(&key.0) {
            Some(Socket::Listener(listener)) => Some(&listener.at),
            Some(Socket::Stream(stream)) => stream.local.as_ref(),
            None => None,
        };
        local.ok_or_else(not_open)?.ip().ok_or_else(no_address)
    }

    pub(crate) fn peer_addr(&mut self, key: SocketKey) -> io::Result<SocketAddr> {
        let stream = self.net.stream(key.0)?;
        let remote = stream.remote.as_ref().filter(|_| stream.connected && !stream.broken);
        remote.ok_or_else(not_open)?.ip().ok_or_else(no_address)
    }

    /// Closes a socket; returns its wakers, which the caller drops.
    pub(crate) fn close_socket(&mut self, key: SocketKey) -> Vec<Waker> {
        match self.net.sockets.get(&key.0) {
            None => Vec::new(),
            Some(Socket::Listener(_)) => self.close_listener(key.0),
            Some(Socket::Stream(stream)) => {
                let (peer, finished) = (stream.peer, stream.finished);
                let unread = !stream.inbound.is_empty();
                if let Some(to) = peer.filter(|_| unread || !finished) {
                    // As TCP does: unread data is answered by a reset.
                    let event = if unread { NetEvent::Reset { to } } else { NetEvent::Fin { to } };
                    self.send_along(key.0, event);
                }
                self.forget(key.0)
            }
        }
    }

    fn close_listener(&mut self, key: u64) -> Vec<Waker> {
        let Some(Socket::Listener(listener)) = self.net.sockets.remove(&key) else {
            return Vec::new();
        };
        for server in listener.waiting {
            self.reset_peer_of(server);
            self.net.sockets.remove(&server);
        }
        listener.waker.into_iter().collect()
    }

    fn forget(&mut self, key: u64) -> Vec<Waker> {
        match self.net.sockets.remove(&key) {
            Some(Socket::Stream(stream)) => stream.readers.into_iter().flatten().collect(),
            Some(Socket::Listener(listener)) => listener.waker.into_iter().collect(),
            None => Vec::new(),
        }
    }

    fn reset_peer_of(&mut self, key: u64) {
        if let Ok(Some(to)) = self.net.stream(key).map(|stream| stream.peer) {
            self.send_loose(NetEvent::Reset { to });
        }
    }

    /// Ends a machine's life. The caller closes the returned cores, then drops the rest.
    pub(crate) fn crash(&mut self, machine: usize) -> (Vec<Rc<Core>>, Leftovers) {
        self.trace(Trace::Crash, machine, 0, 0);
        let mut wakers = self.crash_sockets(machine);
        let machine = &mut self.machines[machine];
        machine.life += 1;
        wakers.append(&mut machine.stop_wakers);
        let mut cores = std::mem::take(&mut machine.cores);
        let running = cores.iter_mut().filter_map(|sim| sim.core.take()).collect();
        (running, (cores, wakers))
    }

    /// Removes all sockets of a machine.
    fn crash_sockets(&mut self, machine: usize) -> Vec<Waker> {
        let of_machine = |socket: &Socket| match socket {
            Socket::Listener(listener) => listener.machine == machine,
            Socket::Stream(stream) => stream.machine == machine,
        };
        let sockets = self.net.sockets.iter().filter(|(_, socket)| of_machine(socket));
        let keys: Vec<u64> = sockets.map(|(key, _)| *key).collect();
        let mut wakers = Vec::new();
        for key in keys {
            self.reset_peer_of(key);
            wakers.append(&mut self.forget(key));
        }
        wakers
    }

    /// Resets all connections between two machines.
    pub(crate) fn disconnect(&mut self, one: usize, other: usize) {
        self.trace(Trace::Disconnect, one, other, 0);
        let ends: BTreeMap<u64, (usize, Option<u64>)> = self
            .net
            .sockets
            .iter()
            .filter_map(|(key, socket)| match socket {
                Socket::Stream(stream) => Some((*key, (stream.machine, stream.peer))),
                Socket::Listener(_) => None,
            })
            .collect();
        for (key, (machine, peer)) in &ends {
            let Some((peer_machine, _)) = peer.and_then(|peer| ends.get(&peer)) else { continue };
            let pair = (*machine, *peer_machine);
            if pair == (one, other) || pair == (other, one) {
                self.send_loose(NetEvent::Reset { to: *key });
            }
        }
    }
}

/// Moves as many bytes as `into` has from the front of a queue, which has them.
fn take(queue: &mut VecDeque<u8>, into: &mut [u8]) {
    let (front, back) = queue.as_slices();
    let (first, second) = into.split_at_mut(into.len().min(front.len()));
    first.copy_from_slice(&front[..first.len()]);
    second.copy_from_slice(&back[..second.len()]);
    queue.drain(..into.len());
}
