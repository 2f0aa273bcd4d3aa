//! The floor of operations of any length, on several connections: a server that moves their bytes
//! and does nothing else.
//!
//! Like [`crate::floor`], it takes every `command` bytes as one operation, answers with `answer`
//! bytes, and never sleeps. It keeps the first bytes of a command only, so a long one is not
//! copied.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::Error;
use crate::wire::dword;

/// Most slices of one send, two an operation.
const SLICES: usize = 64;
const HEADER_BYTES: usize = 24;

/// A client's connection, and the command that it sends.
struct Peer {
    stream: TcpStream,
    parser: Parser,
    payload: Vec<u8>,
    open: bool,
}

/// Counts the bytes of commands.
struct Parser {
    command: usize,
    answer: usize,
    /// Bytes received of the current command.
    have: usize,
    header: [u8; HEADER_BYTES],
}

/// Serves this many connections on a port of the loopback address, until all clients have
/// disconnected. Calls `ready` with the address.
///
/// # Errors
/// If it cannot listen, or a client does not say its sizes.
pub fn serve(connections: usize, ready: impl FnOnce(SocketAddr)) -> Result<(), Error> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(Error::system("cannot listen"))?;
    ready(listener.local_addr().map_err(Error::system("a socket"))?);
    let peers: Result<Vec<Peer>, Error> = (0..connections).map(|_| accept(&listener)).collect();
    let (mut peers, mut input) = (peers?, vec![0; 256 << 10]);
    while peers.iter().any(|peer| peer.open) {
        for peer in peers.iter_mut().filter(|peer| peer.open) {
            peer.turn(&mut input);
        }
    }
    Ok(())
}

fn accept(listener: &TcpListener) -> Result<Peer, Error> {
    let (mut stream, _) = listener.accept().map_err(Error::system("cannot accept a client"))?;
    let mut sizes = [0; 8];
    let begun = stream.set_nodelay(true).and_then(|()| stream.read_exact(&mut sizes));
    begun.map_err(Error::system("the client's sizes"))?;
    let (command, answer) = (dword(&sizes, 0) as usize, dword(&sizes, 4) as usize);
    if command < HEADER_BYTES || answer < HEADER_BYTES {
        return Err(Error::Usage(format!("{command} and {answer} bytes are not sizes of PDUs")));
    }
    stream.set_nonblocking(true).map_err(Error::system("a socket"))?;
    let payload = vec![0x5A; answer - HEADER_BYTES];
    Ok(Peer { stream, parser: Parser::new(command, answer), payload, open: true })
}

impl Peer {
    /// Receives once, and answers every command that is complete.
    fn turn(&mut self, input: &mut [u8]) {
        let count = match self.stream.read(input) {
            Ok(count) if count > 0 => count,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return;
            }
            _ => {
                self.open = false;
                return;
            }
        };
        for group in self.parser.answers(&input[..count]).chunks(SLICES / 2) {
            let both = group.iter().flat_map(|header| [&header[..], &self.payload[..]]);
            let mut slices: Vec<IoSlice<'_>> =
                both.filter(|part| !part.is_empty()).map(IoSlice::new).collect();
            let mut slices = &mut slices[..];
            while !slices.is_empty() {
                match self.stream.write_vectored(slices) {
                    Ok(count) => IoSlice::advance_slices(&mut slices, count),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
                    Err(_) => {
                        self.open = false;
                        return;
                    }
                }
            }
        }
    }
}

impl Parser {
    fn new(command: usize, answer: usize) -> Self {
        Self { command, answer, have: 0, header: [0; HEADER_BYTES] }
    }

    /// Returns the headers of the answers to all commands that `input` completes.
    fn answers(&mut self, mut input: &[u8]) -> Vec<[u8; HEADER_BYTES]> {
        let mut headers = Vec::new();
        while !input.is_empty() {
            let count = (self.command - self.have).min(input.len());
            let (now, later) = input.split_at(count);
            if self.have < HEADER_BYTES {
                let kept = count.min(HEADER_BYTES - self.have);
                self.header[self.have..self.have + kept].copy_from_slice(&now[..kept]);
            }
            input = later;
            self.have += count;
            if self.have == self.command {
                headers.push(self.header());
                self.have = 0;
            }
        }
        headers
    }

    /// Returns the header of the answer to the current command: of a C2HData PDU with SUCCESS, or
    /// of a response capsule, with the command's identifier.
    fn header(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        let has_data = self.answer > HEADER_BYTES;
        (header[0], header[1]) = if has_data { (7, 0x0C) } else { (5, 0) };
        let length = u32::try_from(self.answer).unwrap_or(u32::MAX);
        header[4..8].copy_from_slice(&length.to_le_bytes());
        let at = if has_data { 8 } else { 20 };
        header[at..at + 2].copy_from_slice(&self.header[10..12]);
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_any_length_are_answered_once_with_their_identifier() {
        for (command, answer) in [(72, 24 + 4096), (72 + 5000, 24)] {
            let mut stream = vec![0; command * 3];
            for index in 0..3u8 {
                stream[usize::from(index) * command + 10] = index;
            }
            for piece in [7, 50, 4096, stream.len()] {
                let mut parser = Parser::new(command, answer);
                let headers: Vec<_> =
                    stream.chunks(piece).flat_map(|part| parser.answers(part)).collect();
                let at = if answer > 24 { 8 } else { 20 };
                let cids: Vec<u8> = headers.iter().map(|header| header[at]).collect();
                assert_eq!((cids, parser.have), (vec![0, 1, 2], 0));
                let kind = if answer > 24 { [7, 0x0C] } else { [5, 0] };
                assert!(headers.iter().all(|header| header[..2] == kind));
            }
        }
    }
}
