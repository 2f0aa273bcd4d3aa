//! A way to a drive that tests cut, stop and open again, and that keeps what hosts send.
//!
//! Written from the standard's byte offsets. Invariant: bytes of a host are kept before they are
//! passed on.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use crate::drive::LIMIT;

/// Type of the PDU that carries a command.
const CAPSULE: u8 = 0x04;

/// A way to a drive; see the module's text.
pub struct Way {
    /// Address of this end of it.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_cut: bool,
    /// Bytes of hosts are kept and not passed on.
    is_stopped: bool,
    ends: Vec<TcpStream>,
    /// Bytes of hosts, by connection.
    sent: Vec<Vec<u8>>,
}

impl Way {
    /// Makes a way to `drive` that passes everything on.
    #[must_use]
    pub fn to(drive: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared: Arc<Shared> = Arc::default();
        let own = Arc::clone(&shared);
        // Threads of a test end with its process.
        std::thread::spawn(move || {
            for host in listener.incoming().map(Result::unwrap) {
                own.connect(host, drive);
            }
        });
        Self { address, shared }
    }

    /// Ends all connections, and those that are made from now on.
    pub fn cut(&self) {
        let mut state = self.shared.state.lock().unwrap();
        state.is_cut = true;
        for end in state.ends.drain(..) {
            let _was_open = end.shutdown(Shutdown::Both);
        }
    }

    /// Passes nothing on from now on that hosts send.
    pub fn stop(&self) {
        self.shared.state.lock().unwrap().is_stopped = true;
    }

    /// Passes everything on that is sent over connections made from now on.
    pub fn open(&self) {
        let mut state = self.shared.state.lock().unwrap();
        (state.is_cut, state.is_stopped) = (false, false);
    }

    /// Waits until hosts have sent `count` commands with this opcode to this namespace; returns
    /// their submission queue entries.
    ///
    /// # Panics
    /// If they do not send them.
    #[must_use]
    pub fn commands(&self, (nsid, opcode): (u32, u8), count: usize) -> Vec<[u8; 64]> {
        let of_state = |state: &State| -> Vec<[u8; 64]> {
            let all = state.sent.iter().flat_map(|sent| commands(sent));
            all.filter(|sqe| sqe[0] == opcode && sqe[4..8] == nsid.to_le_bytes()).collect()
        };
        let state = self.shared.state.lock().unwrap();
        let (state, _) = self
            .shared
            .changed
            .wait_timeout_while(state, LIMIT, |state| of_state(state).len() < count)
            .unwrap();
        let found = of_state(&state);
        assert!(found.len() >= count, "hosts sent {} of {count} commands", found.len());
        found
    }
}

impl Shared {
    fn connect(self: &Arc<Self>, host: TcpStream, drive: SocketAddr) {
        let drive = TcpStream::connect(drive).unwrap();
        let mut state = self.state.lock().unwrap();
        if state.is_cut {
            return;
        }
        let number = state.sent.len();
        state.sent.push(Vec::new());
        for end in [&host, &drive] {
            end.set_nodelay(true).unwrap();
            state.ends.push(end.try_clone().unwrap());
        }
        let (mut answers, mut back) = (drive.try_clone().unwrap(), host.try_clone().unwrap());
        std::thread::spawn(move || {
            let _ended = io::copy(&mut answers, &mut back);
            let _gone = back.shutdown(Shutdown::Write);
        });
        let own = Arc::clone(self);
        std::thread::spawn(move || {
            let _ended = own.pass_on(number, host, &drive);
            let _gone = drive.shutdown(Shutdown::Write);
        });
    }

    fn pass_on(&self, number: usize, mut host: TcpStream, mut drive: &TcpStream) -> io::Result<()> {
        let mut bytes = vec![0; 1 << 16];
        loop {
            let count = host.read(&mut bytes)?;
            if count == 0 {
                return Ok(());
            }
            let is_stopped = {
                let mut state = self.state.lock().unwrap();
                state.sent[number].extend_from_slice(&bytes[..count]);
                state.is_stopped
            };
            self.changed.notify_all();
            if !is_stopped {
                drive.write_all(&bytes[..count])?;
            }
        }
    }
}

/// Returns the commands among the bytes of a connection.
fn commands(mut sent: &[u8]) -> Vec<[u8; 64]> {
    let mut found = Vec::new();
    while sent.len() >= 8 {
        let length = u32::from_le_bytes(sent[4..8].try_into().unwrap()) as usize;
        let Some(pdu) = sent.get(..length.max(8)) else { break };
        if pdu[0] == CAPSULE {
            found.push(pdu[8..72].try_into().unwrap());
        }
        sent = &sent[pdu.len()..];
    }
    found
}
