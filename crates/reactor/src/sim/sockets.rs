//! The sockets of a world, what is in flight between them, and what a partition holds back.
//!
//! Invariant: this module changes one socket at a time, and sends nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::task::Waker;

use crate::backend::Direction;
use crate::endpoint::Endpoint;

/// Something in flight on the network. The socket `from` may have been closed meanwhile.
pub(super) enum NetEvent {
    Connect {
        client: u64,
        machine: usize,
        to: Endpoint,
    },
    Accepted {
        client: u64,
        server: u64,
    },
    Refused {
        client: u64,
        kind: ErrorKind,
    },
    Data {
        to: u64,
        from: u64,
        bytes: Vec<u8>,
    },
    /// The reader took bytes, so the writer has room.
    Credit {
        to: u64,
        bytes: usize,
    },
    Fin {
        to: u64,
    },
    Reset {
        to: u64,
    },
}

#[derive(Default)]
pub(super) struct Network {
    pub(super) sockets: BTreeMap<u64, Socket>,
    made: u64,
}

pub(super) enum Socket {
    Listener(Listener),
    Stream(Box<Stream>),
}

pub(super) struct Listener {
    pub(super) machine: usize,
    pub(super) at: Endpoint,
    pub(super) waiting: VecDeque<u64>,
    pub(super) waker: Option<Waker>,
}

#[derive(Default)]
pub(super) struct Stream {
    pub(super) machine: usize,
    pub(super) local: Option<Endpoint>,
    pub(super) remote: Option<Endpoint>,
    pub(super) peer: Option<u64>,
    pub(super) connected: bool,
    pub(super) inbound: VecDeque<u8>,
    /// Number of sent bytes that the peer has not read.
    pub(super) outstanding: usize,
    /// True if the peer will send no more, or this end will read no more.
    pub(super) ended: bool,
    /// True if this end will send no more.
    pub(super) finished: bool,
    pub(super) error: Option<ErrorKind>,
    /// True if the error was reported; from then on reads end and writes fail.
    pub(super) broken: bool,
    /// Arrival time of the last item sent; the next one may not overtake it.
    pub(super) last_arrival_ns: u64,
    pub(super) readers: [Option<Waker>; 2],
    /// Number of detachments; keys from before the last one are invalid.
    pub(super) detached: u64,
}

impl Stream {
    pub(super) fn is_ready(&self, direction: Direction, window: usize) -> bool {
        let over = self.error.is_some() || self.broken;
        match direction {
            Direction::Read => over || self.ended || !self.inbound.is_empty(),
            Direction::Write => {
                over || (self.connected && (self.finished || self.outstanding < window))
            }
        }
    }

    /// Returns the error to report, if the connection is dead.
    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        let kind = self.error.take()?;
        self.broken = true;
        Some(kind.into())
    }
}

pub(super) fn not_open() -> io::Error {
    io::Error::new(ErrorKind::NotConnected, "the socket is not open on this core")
}

impl Network {
    pub(super) fn insert(&mut self, socket: Socket) -> u64 {
        self.made += 1;
        self.sockets.insert(self.made, socket);
        self.made
    }

    pub(super) fn stream(&mut self, key: u64) -> io::Result<&mut Stream> {
        match self.sockets.get_mut(&key) {
            Some(Socket::Stream(stream)) => Ok(stream),
            _ => Err(not_open()),
        }
    }

    pub(super) fn listener_at(&mut self, machine: usize, to: &Endpoint) -> Option<&mut Listener> {
        self.sockets.values_mut().find_map(|socket| match socket {
            Socket::Listener(one) if one.machine == machine && takes(&one.at, to) => Some(one),
            _ => None,
        })
    }
}

/// Returns true if a listener at `at` takes connections to `to`, on the same machine.
fn takes(at: &Endpoint, to: &Endpoint) -> bool {
    match (at.ip(), to.ip()) {
        (Some(at), Some(to)) => at.port() == to.port(),
        _ => at == to,
    }
}

/// Two machines, the lower number first.
pub(super) type Pair = (usize, usize);

#[derive(Default)]
pub(super) struct Partitions {
    pub(super) parted: BTreeSet<Pair>,
    /// Events that would have arrived across a partition, in that order.
    pub(super) held: Vec<(Pair, NetEvent)>,
}
