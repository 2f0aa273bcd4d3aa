//! The floor: a server that moves the same bytes per I/O as a drive and does nothing else. Its rate
//! bounds that of any drive.
//!
//! It does not change with the drive. It receives all bytes that are available, takes every
//! `command` bytes as one I/O, and answers with `answer` bytes, up to 64 slices a call. It never
//! sleeps and does not access payloads.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};

const SLICES: usize = 64;
const HEADER_BYTES: usize = 24;

/// Serves one connection on a port that it prints, until the client disconnects.
pub fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("{}", listener.local_addr().expect("bound"));
    let (mut stream, _) = listener.accept().expect("a client");
    stream.set_nodelay(true).expect("a socket");
    let mut sizes = [0; 8];
    stream.read_exact(&mut sizes).expect("sizes");
    let size = |at: usize| u32::from_le_bytes(sizes[at..at + 4].try_into().expect("four")) as usize;
    let (command, answer) = (size(0), size(4));
    stream.set_nonblocking(true).expect("a socket");
    let mut input = vec![0; 256 << 10];
    let payload = vec![0x5A; answer - HEADER_BYTES];
    let mut partial = Vec::with_capacity(command);
    loop {
        let count = match stream.read(&mut input) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(_) => return,
        };
        let headers = answers(&mut partial, &input[..count], command, answer);
        for group in headers.chunks(SLICES / 2) {
            let both = group.iter().flat_map(|header| [&header[..], &payload[..]]);
            let mut slices: Vec<IoSlice<'_>> =
                both.filter(|part| !part.is_empty()).map(IoSlice::new).collect();
            if !send(&mut stream, &mut slices) {
                return;
            }
        }
    }
}

/// Returns the headers of the answers to all commands that `input` completes. Keeps the first bytes
/// of an incomplete command in `partial`. An answer repeats the identifier of its command.
fn answers(
    partial: &mut Vec<u8>,
    mut input: &[u8],
    command: usize,
    answer: usize,
) -> Vec<[u8; HEADER_BYTES]> {
    let mut headers = Vec::with_capacity(input.len() / command + 1);
    while !input.is_empty() {
        let count = (command - partial.len()).min(input.len());
        partial.extend_from_slice(&input[..count]);
        input = &input[count..];
        if partial.len() == command {
            let cid = [partial[10], partial[11]];
            let mut header = [0; HEADER_BYTES];
            // A C2HData PDU with SUCCESS, or a response capsule, as a drive would send.
            header[0] = if answer > HEADER_BYTES { 7 } else { 5 };
            header[1] = if answer > HEADER_BYTES { 0x0C } else { 0 };
            let length = u32::try_from(answer).expect("small");
            header[4..8].copy_from_slice(&length.to_le_bytes());
            let at = if answer > HEADER_BYTES { 8 } else { 20 };
            header[at..at + 2].copy_from_slice(&cid);
            headers.push(header);
            partial.clear();
        }
    }
    headers
}

fn send(stream: &mut TcpStream, mut slices: &mut [IoSlice<'_>]) -> bool {
    while !slices.is_empty() {
        match stream.write_vectored(slices) {
            Ok(count) => IoSlice::advance_slices(&mut slices, count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(_) => return false,
        }
    }
    true
}
