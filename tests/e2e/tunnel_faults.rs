//! An open TCP connection through the tunnel goes on when the link is cut, the drive is killed, or
//! the process of either end is.

use csd_tests::drive::LIMIT;
use csd_tests::proxy::{Door, Proxy};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc;

use crate::support::data::bytes;
use crate::support::drive::{Drive, NQN};
use crate::support::harness::wait_until;
use crate::support::netns::Namespaces;
use crate::support::tunnel::{TUNNEL_HOST, up};

/// Tunnel Send of the compute namespace.
const SEND: (u32, u8) = (5, 0xC1);
/// 64-bit numbers of a part of what is copied: 4 MiB.
const PART: usize = 1 << 19;

/// Returns a part of what is copied.
fn part(number: u64) -> Vec<u8> {
    bytes(number, 8 * PART)
}

/// A copy over one connection, part by part.
struct Copying<'a> {
    parts: mpsc::Sender<Vec<u8>>,
    received: &'a Mutex<Vec<u8>>,
    sent: Cell<u64>,
}

impl Copying<'_> {
    /// Sends the next part, as far as the connection takes it now.
    fn begin(&self) {
        self.parts.send(part(self.sent.get())).unwrap();
        self.sent.set(self.sent.get() + 1);
    }

    /// Waits until all parts have arrived.
    fn arrives(&self) {
        let wanted = usize::try_from(self.sent.get()).unwrap() * PART * 8;
        wait_until("a part arrives", || self.received.lock().unwrap().len() == wanted);
    }
}

/// Copies from one end of a connection to the other while `act` runs; returns all that arrived.
fn copied(mut from: TcpStream, mut to: TcpStream, act: impl FnOnce(&Copying<'_>)) -> Vec<u8> {
    to.set_read_timeout(Some(LIMIT)).unwrap();
    let received = Mutex::new(Vec::new());
    let (parts, wanted) = mpsc::channel::<Vec<u8>>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // Blocks while the connection does.
            wanted.iter().for_each(|part| from.write_all(&part).unwrap());
        });
        let received = &received;
        scope.spawn(move || {
            let mut some = vec![0; 64 << 10];
            loop {
                match to.read(&mut some).unwrap() {
                    0 => return,
                    count => received.lock().unwrap().extend_from_slice(&some[..count]),
                }
            }
        });
        act(&Copying { parts, received, sent: Cell::new(0) });
    });
    received.into_inner().unwrap()
}

#[test]
fn an_open_connection_outlives_cuts_kills_and_restarts() {
    let Some(namespaces) = Namespaces::for_tunnels("r", 2) else { return };
    let options = ["--inside", "inside", "--tunnel-host", TUNNEL_HOST];
    let mut drive = Drive::serve("memory", &options);
    let proxy = Proxy::before(drive.address());
    let outside = format!("nvme+tcp://{}/{NQN}", proxy.address);
    let inside = drive.inside_url("inside");
    let mut host = up(&namespaces, 0, &drive.array, (&outside, "csd0"));
    let mut guest = up(&namespaces, 1, &drive.array, (&inside, "csd0"));
    let address: SocketAddr = "10.77.0.2:7000".parse().unwrap();
    let listener = namespaces.listener(1, address);
    let from = namespaces.connected(0, address);
    let (to, _) = listener.accept().unwrap();
    let gone = |number| namespaces.ip(number, "link show csd0").is_err();
    let received = copied(from, to, |copying| {
        copying.begin();
        copying.arrives();
        // The link is cut amid a part.
        proxy.cut(SEND, &[3], Door::Held);
        copying.begin();
        wait_until("the link is cut", || proxy.cuts() == 1);
        proxy.open();
        copying.arrives();
        // The drive is killed amid a part, and started again at another address.
        copying.begin();
        drive.kill();
        drive.start("memory", &options);
        proxy.redirect(drive.address());
        copying.arrives();
        // Either end is killed amid a part: its device goes with it.
        host.kill();
        wait_until("its device goes", || gone(0));
        copying.begin();
        host = up(&namespaces, 0, &drive.array, (&outside, "csd0"));
        copying.arrives();
        copying.begin();
        guest.kill();
        wait_until("its device goes", || gone(1));
        guest = up(&namespaces, 1, &drive.array, (&inside, "csd0"));
        copying.arrives();
    });
    let all: Vec<u8> = (0..5).flat_map(part).collect();
    assert!(received == all, "the copy is whole and in order");
    host.stop().expect(0, &[]);
    guest.stop().expect(0, &[]);
    assert!(gone(0) && gone(1), "no device is left");
    drive.stop().expect(0, &[]);
}
