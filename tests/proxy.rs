//! Proxy in front of a drive. It cuts connections, at once or after given commands, and keeps the
//! commands that hosts send.
//!
//! Written from the standard's byte offsets: it reads the headers of PDUs and the first bytes of
//! commands, and changes nothing. Invariants: a command is kept before it is passed on; a cut after
//! a command ends all connections to the drive at once, right after the command was passed on to
//! the drive, which may or may not execute it.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use crate::drive::LIMIT;

/// Namespace and opcode: a kind of command.
pub type Kind = (u32, u8);

/// Type of the PDU that carries a command.
const CAPSULE: u8 = 0x04;

/// Fate of connections that are made after a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// They are passed through.
    Open,
    /// They wait for [`Proxy::open`].
    Held,
    /// They are closed.
    Shut,
}

/// Proxy in front of one drive.
pub struct Proxy {
    /// Address at which hosts reach the drive.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    drive: SocketAddr,
    door: Door,
    /// Kind of commands to count, and the number that have passed.
    counted: Kind,
    passed: usize,
    /// Counts at which all connections are cut, rising.
    cuts: VecDeque<usize>,
    /// State of the door after the next cut.
    then: Door,
    cut: usize,
    connections: Vec<TcpStream>,
    /// Nothing of hosts is passed on.
    is_withheld: bool,
    /// Submission queue entries that hosts have sent.
    sent: Vec<[u8; 64]>,
}

impl Proxy {
    /// Makes a proxy for the drive at `drive` that passes everything through.
    #[must_use]
    pub fn before(drive: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = State {
            drive,
            door: Door::Open,
            counted: (0, 0),
            passed: 0,
            cuts: VecDeque::new(),
            then: Door::Open,
            cut: 0,
            connections: Vec::new(),
            is_withheld: false,
            sent: Vec::new(),
        };
        let shared = Arc::new(Shared { state: state.into(), changed: Condvar::new() });
        let own = Arc::clone(&shared);
        // Threads of a test end with its process.
        std::thread::spawn(move || {
            for host in listener.incoming().map_while(Result::ok) {
                let own = Arc::clone(&own);
                std::thread::spawn(move || own.serve(host));
            }
        });
        Self { address, shared }
    }

    /// Counts commands of this kind from now on, cuts when their number is one of `cuts`, and then
    /// sets the door to `then`.
    pub fn cut(&self, commands: Kind, cuts: &[usize], then: Door) {
        let mut state = self.shared.state.lock().unwrap();
        (state.counted, state.passed, state.cut) = (commands, 0, 0);
        (state.cuts, state.then) = (cuts.iter().copied().collect(), then);
    }

    /// Returns the number of cuts so far.
    #[must_use]
    pub fn cuts(&self) -> usize {
        self.shared.state.lock().unwrap().cut
    }

    /// Returns how many of the counted commands have passed.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.shared.state.lock().unwrap().passed
    }

    /// Ends all connections at once, and those that are made from now on.
    pub fn shut(&self) {
        self.shared.state.lock().unwrap().end_all(Door::Shut);
    }

    /// Passes nothing on from now on that hosts send.
    pub fn withhold(&self) {
        self.shared.state.lock().unwrap().is_withheld = true;
    }

    /// Passes connections, and what hosts send, through again.
    pub fn open(&self) {
        let mut state = self.shared.state.lock().unwrap();
        (state.door, state.is_withheld) = (Door::Open, false);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Sets a new address of the drive.
    pub fn redirect(&self, drive: SocketAddr) {
        self.shared.state.lock().unwrap().drive = drive;
    }

    /// Waits until hosts have sent `count` commands of this kind; returns their submission queue
    /// entries.
    ///
    /// # Panics
    /// If they do not send them.
    #[must_use]
    pub fn sent(&self, commands: Kind, count: usize) -> Vec<[u8; 64]> {
        let of_state = |state: &State| -> Vec<[u8; 64]> {
            state.sent.iter().filter(|sqe| kind(sqe) == commands).copied().collect()
        };
        let (state, _) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.state.lock().unwrap(), LIMIT, |state| {
                of_state(state).len() < count
            })
            .unwrap();
        let found = of_state(&state);
        assert!(found.len() >= count, "hosts sent {} of {count} commands", found.len());
        found
    }
}

impl Shared {
    fn serve(self: Arc<Self>, host: TcpStream) {
        let Some(drive) = self.enter(&host) else { return };
        let (mut answers, mut back) = (drive.try_clone().unwrap(), host.try_clone().unwrap());
        std::thread::spawn(move || {
            let _ended = io::copy(&mut answers, &mut back);
            let _gone = back.shutdown(Shutdown::Both);
        });
        let _ended = self.commands(host, &drive);
        let _gone = drive.shutdown(Shutdown::Both);
    }

    /// Connects to the drive once the door is open, and keeps both ends to be cut.
    fn enter(&self, host: &TcpStream) -> Option<TcpStream> {
        let held = |state: &mut State| state.door == Door::Held;
        let (mut state, _) =
            self.changed.wait_timeout_while(self.state.lock().unwrap(), LIMIT, held).unwrap();
        if state.door == Door::Shut {
            return None;
        }
        let drive = TcpStream::connect(state.drive).ok()?;
        for end in [host, &drive] {
            end.set_nodelay(true).unwrap();
            state.connections.push(end.try_clone().unwrap());
        }
        Some(drive)
    }

    /// Passes PDUs of the host on, one at a time.
    fn commands(&self, mut host: TcpStream, mut drive: &TcpStream) -> io::Result<()> {
        loop {
            let mut pdu = vec![0; 8];
            host.read_exact(&mut pdu)?;
            let length = u32::from_le_bytes([pdu[4], pdu[5], pdu[6], pdu[7]]);
            pdu.resize(usize::try_from(length).unwrap().max(8), 0);
            host.read_exact(&mut pdu[8..])?;
            let command = (pdu[0] == CAPSULE).then(|| pdu[8..72].try_into().unwrap());
            let is_withheld = {
                let mut state = self.state.lock().unwrap();
                state.sent.extend(command);
                state.is_withheld
            };
            self.changed.notify_all();
            if is_withheld {
                continue;
            }
            drive.write_all(&pdu)?;
            if let Some(sqe) = command {
                self.state.lock().unwrap().count(kind(&sqe));
            }
        }
    }
}

impl State {
    fn count(&mut self, command: Kind) {
        if command != self.counted {
            return;
        }
        self.passed += 1;
        if self.cuts.front() != Some(&self.passed) {
            return;
        }
        self.cuts.pop_front();
        self.cut += 1;
        self.end_all(self.then);
    }

    fn end_all(&mut self, then: Door) {
        self.door = then;
        for end in self.connections.drain(..) {
            // One that has ended by itself cannot be shut down.
            let _gone = end.shutdown(Shutdown::Both);
        }
    }
}

/// Returns the kind of a command: the namespace is at bytes 7:4 of its entry, the opcode at byte 0.
fn kind(sqe: &[u8; 64]) -> Kind {
    (u32::from_le_bytes([sqe[4], sqe[5], sqe[6], sqe[7]]), sqe[0])
}
