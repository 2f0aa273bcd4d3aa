//! An open TCP connection through the tunnel goes on when the link is cut, the drive is killed, or
//! the process of either end is.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::mpsc;

use rustix::process::Signal;

use crate::harness::{LIMIT, finish, numbers, signal, wait_until};
use crate::netns::{HOST, Namespaces, up};
use crate::proxy::{Door, Proxy};
use crate::single::{Drive, NQN};

/// Tunnel Send of the compute namespace.
const SEND: (u32, u8) = (5, 0xC1);
/// 64-bit numbers of a part of what is copied: 4 MiB.
const PART: usize = 1 << 19;

#[test]
fn an_open_connection_outlives_cuts_kills_and_restarts() {
    let Some(namespaces) = Namespaces::new("r", 2) else { return };
    let options = ["--inside", "inside", "--tunnel-host", HOST];
    let mut drive = Drive::serve("memory", &options);
    let proxy = Proxy::before(drive.address());
    let outside = format!("nvme+tcp://127.0.0.1:{}/{NQN}", proxy.port);
    let inside = format!("nvme+unix://{}/{NQN}", drive.array.path("inside").display());
    let mut host = up(&namespaces, 0, &drive.array, (&outside, "csd0"));
    let mut guest = up(&namespaces, 1, &drive.array, (&inside, "csd0"));
    let address: SocketAddr = "10.77.0.2:7000".parse().unwrap();
    let listener = namespaces.listener(1, address);
    let mut from = namespaces.connected(0, address);
    let (mut to, _) = listener.accept().unwrap();
    to.set_read_timeout(Some(LIMIT)).unwrap();
    let part = |number| numbers(number, PART).flat_map(u64::to_le_bytes).collect::<Vec<u8>>();
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
        let sent = std::cell::Cell::new(0);
        // The part begins under the fault, and arrives after it.
        let begin = || {
            parts.send(part(sent.get())).unwrap();
            sent.set(sent.get() + 1);
        };
        let arrived = || {
            let wanted = usize::try_from(sent.get()).unwrap() * PART * 8;
            wait_until("a part arrives", || received.lock().unwrap().len() == wanted);
        };
        begin();
        arrived();
        // The link is cut amid a part.
        proxy.cut(SEND, &[3], Door::Held);
        begin();
        wait_until("the link is cut", || proxy.cuts() == 1);
        proxy.open();
        arrived();
        // The drive is killed amid a part, and started again at another address.
        begin();
        let running = drive.running.take().unwrap();
        signal(running.child.id(), Signal::KILL);
        finish(running);
        drive.start("memory", &options);
        proxy.redirect(drive.address());
        arrived();
        // Either end is killed amid a part: its device goes with it.
        host.kill();
        wait_until("its device goes", || namespaces.ip(0, "link show csd0").is_err());
        begin();
        host = up(&namespaces, 0, &drive.array, (&outside, "csd0"));
        arrived();
        begin();
        guest.kill();
        wait_until("its device goes", || namespaces.ip(1, "link show csd0").is_err());
        guest = up(&namespaces, 1, &drive.array, (&inside, "csd0"));
        arrived();
        drop(parts);
    });
    let all: Vec<u8> = (0..5).flat_map(part).collect();
    assert!(received.into_inner().unwrap() == all, "the copy is whole and in order");
    host.stop().expect(0, &[]);
    guest.stop().expect(0, &[]);
    for number in 0..2 {
        assert!(namespaces.ip(number, "link show csd0").is_err(), "no device is left");
    }
    drive.stop().expect(0, &[]);
}
