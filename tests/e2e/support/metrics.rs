//! The page of a drive's metrics (`--metrics`).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use csd_tests::drive::LIMIT;

/// Returns a port that was free a moment ago.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Sends a request in HTTP; returns the answer with its head.
pub(crate) fn scrape(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
