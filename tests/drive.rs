//! A drive in the test's own process.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::time::Duration;

use csd_drive::Config;

/// Limit of waits that only end tests that hang.
pub const LIMIT: Duration = Duration::from_secs(600);

/// Serves a drive until the test ends; returns its address, a free port of this machine.
#[track_caller]
pub fn serve(config: Config) -> SocketAddr {
    let config = Config { listen: vec![(Ipv4Addr::LOCALHOST, 0).into()], ..config };
    let (sender, ready) = mpsc::channel();
    std::thread::spawn(move || {
        csd_drive::serve(&config, move |address| sender.send(address).unwrap()).unwrap();
    });
    ready.recv_timeout(LIMIT).expect("the drive is ready")
}
