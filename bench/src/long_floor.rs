//! The floor of operations of any length, on several connections: a server that moves their bytes
//! and does nothing else.
//!
//! Like [`crate::floor`], it takes every `command` bytes as one operation, answers with `answer`
//! bytes, and never sleeps. It keeps the first bytes of a command only, so a long one is not
//! copied. Each connection in turn gets at most 128 KiB of its answers, or as much as it takes: a
//! short answer does not wait for another connection's long ones.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::Error;
use crate::floor::{self, HEADER_BYTES};

/// Most slices of one send, two an operation.
const SLICES: usize = 64;
/// Most bytes that a connection is sent in its turn.
const TURN_BYTES: usize = 128 << 10;

/// A client's connection, and the command that it sends.
struct Peer {
    stream: TcpStream,
    parser: Parser,
    payload: Vec<u8>,
    /// Headers of answers that are not sent, and the bytes of the first one that are.
    waiting: VecDeque<[u8; HEADER_BYTES]>,
    sent: usize,
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
    let (parser, waiting) = (Parser::new(command, answer), VecDeque::new());
    Ok(Peer { stream, parser, payload, waiting, sent: 0, open: true })
}

impl Peer {
    /// Receives once and sends once.
    fn turn(&mut self, input: &mut [u8]) {
        self.open = self.receive(input) && self.send();
    }

    /// Takes the commands that are complete; returns false if the client is gone.
    fn receive(&mut self, input: &mut [u8]) -> bool {
        match self.stream.read(input) {
            Ok(0) => false,
            Ok(count) => {
                self.waiting.extend(self.parser.answers(&input[..count]));
                true
            }
            Err(error) => is_later(&error),
        }
    }

    /// Sends a part of the answers; returns false if the client is gone.
    fn send(&mut self) -> bool {
        let (mut slices, mut room) = (Vec::with_capacity(SLICES), TURN_BYTES);
        let mut skip = self.sent;
        for header in &self.waiting {
            for part in [&header[..], &self.payload[..]] {
                let from = skip.min(part.len());
                skip -= from;
                let part = &part[from..part.len().min(from + room)];
                room -= part.len();
                if !part.is_empty() {
                    slices.push(IoSlice::new(part));
                }
            }
            if room == 0 || slices.len() + 2 > SLICES {
                break;
            }
        }
        if slices.is_empty() {
            return true;
        }
        match self.stream.write_vectored(&slices) {
            Ok(count) => {
                let answer = HEADER_BYTES + self.payload.len();
                self.sent += count;
                self.waiting.drain(..self.sent / answer);
                self.sent %= answer;
                true
            }
            Err(error) => is_later(&error),
        }
    }
}

fn is_later(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
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
