//! The floor: a server that moves the same bytes per I/O as a drive and does nothing else. Its rate
//! bounds that of any drive.
//!
//! It does not change with the drive. It receives all bytes that are available, takes every
//! `command` bytes as one I/O, and answers with `answer` bytes, up to 64 slices a call. It never
//! sleeps and does not access payloads.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::Error;
use crate::wire::dword;

const SLICES: usize = 64;
/// Length of the longest header of a PDU that has no data, bytes.
pub(crate) const HEADER_BYTES: usize = 24;

/// Serves one connection on a port of the loopback address, until the client disconnects. Calls
/// `ready` with the address.
///
/// # Errors
/// If it cannot listen, or the client does not say its sizes.
pub fn serve(ready: impl FnOnce(SocketAddr)) -> Result<(), Error> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(Error::system("cannot listen"))?;
    let address = listener.local_addr().map_err(Error::system("a socket"))?;
    ready(address);
    let (mut stream, command, answer) = accept(&listener)?;
    let mut input = vec![0; 256 << 10];
    let payload = vec![0x5A; answer - HEADER_BYTES];
    let mut partial = Vec::with_capacity(command);
    loop {
        let count = match stream.read(&mut input) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(_) => return Ok(()),
        };
        let headers = answers(&mut partial, &input[..count], command, answer);
        for group in headers.chunks(SLICES / 2) {
            let both = group.iter().flat_map(|header| [&header[..], &payload[..]]);
            let mut slices: Vec<IoSlice<'_>> =
                both.filter(|part| !part.is_empty()).map(IoSlice::new).collect();
            if !send(&mut stream, &mut slices) {
                return Ok(());
            }
        }
    }
}

/// Accepts a client. Returns its connection, and the lengths of its commands and of their answers.
///
/// # Errors
/// If it does not say them, or they are too short.
pub(crate) fn accept(listener: &TcpListener) -> Result<(TcpStream, usize, usize), Error> {
    let (mut stream, _) = listener.accept().map_err(Error::system("cannot accept a client"))?;
    let mut sizes = [0; 8];
    let begun = stream.set_nodelay(true).and_then(|()| stream.read_exact(&mut sizes));
    begun.map_err(Error::system("the client's sizes"))?;
    let (command, answer) = (dword(&sizes, 0) as usize, dword(&sizes, 4) as usize);
    if command < HEADER_BYTES || answer < HEADER_BYTES {
        return Err(Error::Usage(format!("{command} and {answer} bytes are not sizes of PDUs")));
    }
    stream.set_nonblocking(true).map_err(Error::system("a socket"))?;
    Ok((stream, command, answer))
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
            headers.push(header(partial, answer));
            partial.clear();
        }
    }
    headers
}

/// Returns the header of the answer to a command, as a drive would send it: of a C2HData PDU with
/// SUCCESS, or of a response capsule, with the command's identifier.
pub(crate) fn header(command: &[u8], answer: usize) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let has_data = answer > HEADER_BYTES;
    (header[0], header[1]) = if has_data { (7, 0x0C) } else { (5, 0) };
    let length = u32::try_from(answer).unwrap_or(u32::MAX);
    header[4..8].copy_from_slice(&length.to_le_bytes());
    let at = if has_data { 8 } else { 20 };
    header[at..at + 2].copy_from_slice(&command[10..12]);
    header
}

/// Sends everything; returns false if the client is gone.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_whole_command_is_answered_once_with_its_identifier() {
        let mut stream = vec![0; 72 * 3];
        for index in 0..3u8 {
            stream[usize::from(index) * 72 + 10] = index;
        }
        let mut partial = Vec::new();
        let mut cids = Vec::new();
        for piece in stream.chunks(50) {
            let headers = answers(&mut partial, piece, 72, 24 + 4096);
            cids.extend(headers.iter().map(|header| header[8]));
            assert!(headers.iter().all(|header| header[..2] == [7, 0x0C]));
        }
        assert_eq!((cids, partial.len()), (vec![0, 1, 2], 0));
    }
}
