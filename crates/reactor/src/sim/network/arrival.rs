//! Arrivals: what changes at a machine when something in flight reaches it.
//!
//! Invariant: an arrival wakes only the tasks that wait for it.

use std::io::ErrorKind;
use std::task::Waker;

use crate::backend::Direction;
use crate::endpoint::Endpoint;
use crate::sim::sockets::{NetEvent, Socket, Stream};
use crate::sim::state::{State, Trace};

/// Connections that a listener lets wait.
const BACKLOG: usize = 1024;

impl State {
    /// Executes an arrival; returns the wakers to call.
    pub(crate) fn net_event(&mut self, event: NetEvent) -> Vec<Waker> {
        let (kind, to) = match &event {
            NetEvent::Connect { client, .. } => (1, *client),
            NetEvent::Accepted { client, .. } => (2, *client),
            NetEvent::Refused { client, .. } => (3, *client),
            NetEvent::Data { to, .. } => (4, *to),
            NetEvent::Credit { to, .. } => (5, *to),
            NetEvent::Fin { to } => (6, *to),
            NetEvent::Reset { to } => (7, *to),
        };
        self.trace(Trace::Net, kind, 0, to);
        match event {
            NetEvent::Connect { client, machine, to } => self.arrive(client, machine, &to),
            NetEvent::Data { to, from, bytes } => self.receive(to, from, &bytes),
            NetEvent::Accepted { client, server } if self.net.stream(client).is_err() => {
                // The client closed before it was answered.
                self.send_loose(NetEvent::Reset { to: server });
                Vec::new()
            }
            NetEvent::Accepted { client, server } => self.change(client, |stream| {
                stream.connected = true;
                stream.peer = Some(server);
            }),
            NetEvent::Refused { client, kind } => self.change(client, |s| s.error = Some(kind)),
            NetEvent::Credit { to, bytes } => {
                let give = |stream: &mut Stream| {
                    stream.outstanding -= bytes.min(stream.outstanding);
                };
                self.change_one(to, Direction::Write, give)
            }
            NetEvent::Fin { to } => {
                self.change_one(to, Direction::Read, |stream| stream.ended = true)
            }
            NetEvent::Reset { to } => self.change(to, |stream| {
                stream.error = Some(ErrorKind::ConnectionReset);
                stream.peer = None;
            }),
        }
    }

    /// Changes a stream, if it still exists, and wakes its waiters.
    fn change(&mut self, key: u64, change: impl FnOnce(&mut Stream)) -> Vec<Waker> {
        let Ok(stream) = self.net.stream(key) else { return Vec::new() };
        change(stream);
        stream.readers.iter_mut().filter_map(Option::take).collect()
    }

    /// Changes a stream, if it still exists, in what concerns one direction alone, and wakes its
    /// waiter.
    fn change_one(
        &mut self,
        key: u64,
        direction: Direction,
        change: impl FnOnce(&mut Stream),
    ) -> Vec<Waker> {
        let Ok(stream) = self.net.stream(key) else { return Vec::new() };
        change(stream);
        stream.readers[direction as usize].take().into_iter().collect()
    }

    fn receive(&mut self, to: u64, from: u64, bytes: &[u8]) -> Vec<Waker> {
        match self.net.stream(to) {
            // A stream that was reset takes nothing more.
            Ok(stream) if stream.peer == Some(from) => {
                self.change_one(to, Direction::Read, |stream| stream.inbound.extend(bytes))
            }
            _ => {
                self.send_loose(NetEvent::Reset { to: from });
                Vec::new()
            }
        }
    }

    /// Handles a connection request that reaches its machine.
    fn arrive(&mut self, client: u64, machine: usize, to: &Endpoint) -> Vec<Waker> {
        let Ok(Some(remote)) = self.net.stream(client).map(|stream| stream.local.clone()) else {
            return Vec::new();
        };
        let listener = self.net.listener_at(machine, to);
        if listener.is_none_or(|listener| listener.waiting.len() >= BACKLOG) {
            let kind = ErrorKind::ConnectionRefused;
            self.send_loose(NetEvent::Refused { client, kind });
            return Vec::new();
        }
        let stream = Stream {
            machine,
            local: Some(to.clone()),
            remote: Some(remote),
            peer: Some(client),
            connected: true,
            ..Stream::default()
        };
        let server = self.net.insert(Socket::Stream(Box::new(stream)));
        self.send_along(server, NetEvent::Accepted { client, server });
        let Some(listener) = self.net.listener_at(machine, to) else { return Vec::new() };
        listener.waiting.push_back(server);
        listener.waker.take().into_iter().collect()
    }
}
