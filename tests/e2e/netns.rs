//! Network namespaces of a test, and the ends of tunnels in them.
//!
//! Needs root, `ip` and /dev/net/tun; a test says so, and passes, where one is missing.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::harness::{Array, Done, Running, binary, finish, signal, wait_until};

pub(crate) const HOST: &str = "nqn.2026-11.io.csdstore:tunnel-host";

/// Runs `ip`; the error is what it says.
pub(crate) fn ip(arguments: &str) -> Result<String, String> {
    let done = Command::new("ip").args(arguments.split(' ')).output();
    let done = done.map_err(|error| format!("ip: {error}"))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&done.stderr))),
    }
}

/// Network namespaces, removed on drop.
pub(crate) struct Namespaces(Vec<String>);

impl Namespaces {
    /// Makes `count` of them; says why, if this machine cannot.
    pub(crate) fn new(test: &str, count: usize) -> Option<Self> {
        let mut made = Self(Vec::new());
        let mut make = || {
            fs::metadata("/dev/net/tun").map_err(|error| format!("/dev/net/tun: {error}"))?;
            for number in 0..count {
                let name = format!("csd{}{test}{number}", std::process::id());
                ip(&format!("netns add {name}"))?;
                made.0.push(name);
            }
            Ok::<_, String>(())
        };
        match make() {
            Ok(()) => Some(made),
            Err(why) => {
                eprintln!("SKIPPED: {why}");
                None
            }
        }
    }

    pub(crate) fn name(&self, number: usize) -> &str {
        &self.0[number]
    }

    /// Runs `ip` in a namespace.
    pub(crate) fn ip(&self, number: usize, arguments: &str) -> Result<String, String> {
        ip(&format!("-n {} {arguments}", self.0[number]))
    }

    /// Starts `csd` in a namespace.
    pub(crate) fn csd(&self, number: usize, array: &Array, arguments: &[&str]) -> Running {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[number]]).arg(binary());
        array.spawn_as(command, arguments, Stdio::null())
    }

    /// Returns a command of a program in a namespace that sees all else of this machine.
    pub(crate) fn program(&self, number: usize, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.0[number])).arg(program);
        command
    }

    /// Calls `act` on a thread in a namespace. Sockets that it makes stay there.
    pub(crate) fn within<T: Send>(&self, number: usize, act: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(format!("/run/netns/{}", self.0[number])).unwrap();
        std::thread::scope(|scope| {
            let entered = scope.spawn(move || {
                let network = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(namespace.as_fd(), network).unwrap();
                act()
            });
            entered.join().unwrap()
        })
    }

    pub(crate) fn listener(&self, number: usize, address: SocketAddr) -> TcpListener {
        self.within(number, || TcpListener::bind(address).unwrap())
    }

    pub(crate) fn connected(&self, number: usize, address: SocketAddr) -> TcpStream {
        self.within(number, || TcpStream::connect(address).unwrap())
    }

    pub(crate) fn udp(&self, number: usize, address: SocketAddr) -> UdpSocket {
        self.within(number, || UdpSocket::bind(address).unwrap())
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _gone = ip(&format!("netns delete {name}"));
        }
    }
}

/// A command that runs until it is asked to stop; killed when the test fails.
pub(crate) struct Ends(pub(crate) Option<Running>);

impl Ends {
    pub(crate) fn stop(&mut self) -> Done {
        let running = self.0.take().unwrap();
        signal(running.child.id(), Signal::TERM);
        finish(running)
    }

    /// Kills the command, as out of memory would.
    pub(crate) fn kill(&mut self) {
        let mut running = self.0.take().unwrap();
        running.child.kill().unwrap();
        running.child.wait().unwrap();
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

/// Starts an end of the tunnel of the drive at `url` in a namespace, and waits for its device.
pub(crate) fn up(
    namespaces: &Namespaces,
    number: usize,
    array: &Array,
    (url, device): (&str, &str),
) -> Ends {
    let name = namespaces.name(number);
    let up = ["tunnel", "up", "--drive", url, "--netns", name, "--device", device];
    let up = [&up[..], &["--host-nqn", HOST, "--json"]].concat();
    let mut ends = Ends(Some(array.spawn(&up, Stdio::null())));
    wait_until("the end is there", || {
        let running = ends.0.as_mut().unwrap();
        let has_ended = running.child.try_wait().unwrap().is_some();
        let is_there = fs::metadata(running.output.path().join("out")).unwrap().len() > 0;
        if has_ended {
            finish(ends.0.take().unwrap()).expect(-1, &[]);
        }
        is_there
    });
    ends
}
