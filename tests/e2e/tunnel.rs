//! `csd tunnel up`: two network namespaces, joined by a drive's tunnel alone. A drive in one serves
//! a host in the other, over connections that live through the tunnel's absence.
//!
//! Needs root, `ip` and /dev/net/tun; says so, and passes, where one is missing.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::harness::{Array, Running, binary, finish, numbers, signal, wait_until};
use crate::json::Page;
use crate::single::{Drive, NQN};

const HOST: &str = "nqn.2026-11.io.csdstore:tunnel-host";

fn ip(arguments: &str) -> Result<(), String> {
    let done = Command::new("ip").args(arguments.split(' ')).output();
    let done = done.map_err(|error| format!("ip: {error}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&done.stderr))),
    }
}

/// Two network namespaces, removed on drop: the host's and the guest's.
struct Namespaces([String; 2]);

impl Namespaces {
    fn new(test: &str) -> Result<Self, String> {
        fs::metadata("/dev/net/tun").map_err(|error| format!("/dev/net/tun: {error}"))?;
        let name = |end: &str| format!("csd{}{test}{end}", std::process::id());
        let namespaces = Self([name("h"), name("g")]);
        for name in &namespaces.0 {
            ip(&format!("netns add {name}"))?;
        }
        Ok(namespaces)
    }

    /// Runs `csd` in a namespace.
    fn csd(&self, end: usize, array: &Array, arguments: &[&str]) -> Running {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[end]]).arg(binary());
        array.spawn_as(command, arguments, Stdio::null())
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _gone = ip(&format!("netns delete {name}"));
        }
    }
}

/// Ends a command by SIGTERM, and kills it when the test fails.
struct Ends(Option<Running>);

impl Ends {
    fn stop(&mut self) -> crate::harness::Done {
        let running = self.0.take().unwrap();
        signal(running.child.id(), Signal::TERM);
        finish(running)
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(mut running) = self.0.take() {
            let _gone = running.child.kill();
            let _reaped = running.child.wait();
        }
    }
}

#[test]
fn a_host_reaches_the_inside_by_nothing_but_nvme() {
    let namespaces = match Namespaces::new("t") {
        Ok(namespaces) => namespaces,
        Err(why) => return eprintln!("SKIPPED: {why}"),
    };
    let options = ["--inside", "inside", "--tunnel-host", HOST, "--tunnel-mtu", "9000"];
    let mut drive = Drive::serve("memory", &options);
    let outside = fs::read_to_string(drive.array.path("ready")).unwrap().trim().to_owned();
    let inside = format!("nvme+unix://{}/{NQN}", drive.array.path("inside").display());
    // The sockets are of this namespace, the devices of the two others.
    let up = |url: &str, end: usize| {
        let name = &namespaces.0[end];
        let up = ["tunnel", "up", "--drive", url, "--netns", name, "--host-nqn", HOST, "--json"];
        let running = drive.array.spawn(&up, Stdio::null());
        let mut ends = Ends(Some(running));
        wait_until("the device is there", || {
            let child = &mut ends.0.as_mut().unwrap().child;
            if child.try_wait().unwrap().is_some() {
                finish(ends.0.take().unwrap()).expect(-1, &[]);
            }
            ip(&format!("-n {name} link show csd0")).is_ok()
        });
        ends
    };
    let (mut host, mut guest) = (up(&outside, 0), up(&inside, 1));
    // A drive of the guest, which the host reaches through the tunnel.
    let serve = [
        "drive",
        "serve",
        "--media",
        "memory",
        "--size",
        "128M",
        "--listen",
        "10.77.0.2:4420",
        "--allow-any-host",
        "--nqn",
        NQN,
        "--ready-file",
        "guest-ready",
    ];
    let mut served = Ends(Some(namespaces.csd(1, &drive.array, &serve)));
    wait_until("the guest serves", || drive.array.path("guest-ready").exists());
    let url = format!("nvme+tcp://10.77.0.2:4420/{NQN}");
    let value: Vec<u8> = numbers(16, 2 << 20).flat_map(u64::to_le_bytes).collect();
    drive.array.file("value", &value);
    let kv = |arguments: &[&str]| {
        let arguments = [&["kv"], arguments, &["--drive", &url]].concat();
        finish(namespaces.csd(0, &drive.array, &arguments)).expect(0, &[])
    };
    kv(&["put", "value", "v"]);
    kv(&["get", "v", "back"]);
    assert!(fs::read(drive.array.path("back")).unwrap() == value, "16 MiB each way");
    // The guest's end starts anew while a copy is under way; the copy goes on.
    let get = ["kv", "get", "v", "again", "--drive", &url];
    let copying = namespaces.csd(0, &drive.array, &get);
    let done = guest.stop().expect(0, &[]);
    let mut guest = up(&inside, 1);
    finish(copying).expect(0, &[]);
    assert!(fs::read(drive.array.path("again")).unwrap() == value);
    let wrong = Page::read().wrong("tunnel up", "csd tunnel up", &done.json()["result"]);
    assert!(wrong.is_empty(), "{wrong:?}");
    served.stop().expect(0, &[]);
    host.stop().expect(0, &[]);
    guest.stop().expect(0, &[]);
    for name in &namespaces.0 {
        assert!(ip(&format!("-n {name} link show csd0")).is_err(), "the device goes");
    }
    drive.stop().expect(0, &[]);
}

#[test]
fn what_cannot_be_tunnelled_is_refused_in_words() {
    let mut drive = Drive::serve("memory", &[]);
    let url = fs::read_to_string(drive.array.path("ready")).unwrap().trim().to_owned();
    let up = |arguments: &[&str]| drive.array.csd(&[&["tunnel", "up"], arguments].concat());
    up(&["--drive", &url]).expect(2, &["it has no tunnel: start it with --tunnel-host"]);
    up(&["--drive", &url, "--device", "a/b"]).expect(2, &["a device's name"]);
    up(&["--drive", "nvme+tcp://127.0.0.1:1/nqn.2026-11.io.csdstore:x"])
        .expect(1, &["cannot be reached"]);
    drive.stop().expect(0, &[]);
    let serve = ["drive", "serve", "--media", "memory", "--size", "64M", "--tunnel-mtu", "9000"];
    drive.array.csd(&serve).expect(2, &["--tunnel-host"]);
    drive.start("memory", &["--tunnel-host", HOST]);
    let url = fs::read_to_string(drive.array.path("ready")).unwrap().trim().to_owned();
    let none = ["tunnel", "up", "--drive", &url, "--netns", "no-such-namespace"];
    drive.array.csd(&none).expect(1, &["no-such-namespace"]);
}
