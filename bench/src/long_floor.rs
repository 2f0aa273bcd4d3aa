//! The floor of operations of any length, on several connections: a server that moves their bytes
//! and does nothing else.
//!
//! Like [`crate::floor`], it takes every `command` bytes as one operation, answers with `answer`
//! bytes, and never sleeps. It keeps the first bytes of a command only, so a long one is not
//! copied.

use std::io::{ErrorKind, IoSlice, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::Error;
use crate::floor::{self, HEADER_BYTES};

/// Most slices of one send, two an operation.
const SLICES: usize = 64;

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
    let (stream, command, answer) = floor::accept(listener)?;
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
            if !floor::send(&mut self.stream, &mut slices) {
                self.open = false;
                return;
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
                headers.push(floor::header(&self.header, self.answer));
                self.have = 0;
            }
        }
        headers
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
