//! Ends of tunnels in the network namespaces of a test.
//!
//! They need root and /dev/net/tun.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;

use crate::support::harness::{Array, Done, Running, finish, signal, wait_until};
use crate::support::netns::Namespaces;

/// Name of the host that drives let into their tunnels.
pub(crate) const TUNNEL_HOST: &str = "nqn.2026-11.io.csdstore:tunnel-host";

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
    let up = [&up[..], &["--host-nqn", TUNNEL_HOST, "--json"]].concat();
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
