//! Network namespaces of a test.
//!
//! They need root and `ip`; a test says so, and passes, where one is missing.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::support::harness::{Array, Running, binary};

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
    pub(crate) fn new(test: &str, count: usize) -> Result<Self, String> {
        let mut made = Self(Vec::new());
        for number in 0..count {
            let name = format!("csd{}{test}{number}", std::process::id());
            ip(&format!("netns add {name}"))?;
            made.0.push(name);
        }
        Ok(made)
    }

    /// Makes `count` of them that can have tunnels; says why and returns none, if this machine
    /// cannot.
    pub(crate) fn for_tunnels(test: &str, count: usize) -> Option<Self> {
        let device = fs::metadata("/dev/net/tun").map_err(|error| format!("/dev/net/tun: {error}"));
        let made = device.and_then(|_| Self::new(test, count));
        made.inspect_err(|why| eprintln!("SKIPPED: {why}")).ok()
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
