//! Proxy in front of a drive that cuts connections after given commands.
//!
//! Written from the standard's byte offsets: it reads the headers of PDUs and the first bytes of
//! commands, and changes nothing. Invariant: a cut ends all connections to the drive at once, right
//! after its command was passed on to the drive, which may or may not execute it.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use crate::harness::LIMIT;

/// Execute Program of the compute namespace: namespace and opcode.
pub(crate) const EXECUTE: (u32, u8) = (5, 0x01);
/// Retrieve of the objects' namespace.
pub(crate) const RETRIEVE: (u32, u8) = (3, 0x02);
/// Memory Write.
pub(crate) const MEMORY_WRITE: (u32, u8) = (4, 0x05);

/// Type of the PDU that carries a command.
const CAPSULE: u8 = 0x04;

/// Fate of connections that are made after a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// They are passed through.
    Open,
    /// They wait for [`Proxy::open`].
    Held,
    /// They are closed.
    Shut,
}

/// Proxy in front of one drive.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    drive: SocketAddr,
    door: Door,
    /// Commands to count, and the number that have passed.
    counted: (u32, u8),
    passed: usize,
    /// Counts at which all connections are cut, rising.
    cuts: VecDeque<usize>,
    /// State of the door after the next cut.
    then: Door,
    cut: usize,
    connections: Vec<TcpStream>,
}

impl Proxy {
    /// Makes a proxy for the drive at `drive` that passes everything through.
    pub(crate) fn before(drive: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = State {
            drive,
            door: Door::Open,
            counted: (0, 0),
            passed: 0,
            cuts: VecDeque::new(),
            then: Door::Open,
            cut: 0,
            connections: Vec::new(),
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
        Self { port, shared }
    }

    /// Counts `commands` from now on, cuts when their number is one of `cuts`, and then sets the
    /// door to `then`.
    pub(crate) fn cut(&self, commands: (u32, u8), cuts: &[usize], then: Door) {
        let mut state = self.shared.state.lock().unwrap();
        (state.counted, state.passed, state.cut) = (commands, 0, 0);
        (state.cuts, state.then) = (cuts.iter().copied().collect(), then);
    }

    /// Returns the number of cuts so far.
    pub(crate) fn cuts(&self) -> usize {
        self.shared.state.lock().unwrap().cut
    }

    /// Returns how many of the counted commands have passed.
    pub(crate) fn passed(&self) -> usize {
        self.shared.state.lock().unwrap().passed
    }

    /// Passes connections through again.
    pub(crate) fn open(&self) {
        self.shared.state.lock().unwrap().door = Door::Open;
        self.shared.changed.notify_all();
    }

    /// Sets a new address of the drive.
    pub(crate) fn redirect(&self, drive: SocketAddr) {
        self.shared.state.lock().unwrap().drive = drive;
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
            drive.write_all(&pdu)?;
            if pdu[0] == CAPSULE {
                // Opcode at byte 0 and namespace at bytes 7:4 of the command.
                let nsid = u32::from_le_bytes([pdu[12], pdu[13], pdu[14], pdu[15]]);
                self.count((nsid, pdu[8]));
            }
        }
    }

    fn count(&self, command: (u32, u8)) {
        let mut state = self.state.lock().unwrap();
        if command != state.counted {
            return;
        }
        state.passed += 1;
        if state.cuts.front() != Some(&state.passed) {
            return;
        }
        state.cuts.pop_front();
        state.cut += 1;
        state.door = state.then;
        for end in state.connections.drain(..) {
            // One that has ended by itself cannot be shut down.
            let _gone = end.shutdown(Shutdown::Both);
        }
    }
}
