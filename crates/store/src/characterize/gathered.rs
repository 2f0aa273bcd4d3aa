//! [`Gathered`]: the result of a computation on the host, in pieces.
//!
//! Never moves what was written: a result grows by pieces, as a drive's output does. Invariant:
//! pieces are in order and none is empty.

/// Size of the pieces that short runs are appended to, bytes.
const PIECE_BYTES: usize = 1 << 20;

/// A result in memory.
#[derive(Debug, Default)]
pub struct Gathered {
    pieces: Vec<Vec<u8>>,
    bytes: usize,
}

impl Gathered {
    /// A new piece of `bytes` zeros, to be written.
    pub fn piece(&mut self, bytes: usize) -> &mut [u8] {
        self.bytes += bytes;
        self.pieces.push(vec![0; bytes]);
        self.pieces.last_mut().expect("one was pushed")
    }

    /// Appends bytes.
    pub fn append(&mut self, mut bytes: &[u8]) {
        self.bytes += bytes.len();
        while !bytes.is_empty() {
            let room = self.pieces.last().map_or(0, |last| last.capacity() - last.len());
            if room == 0 {
                self.pieces.push(Vec::with_capacity(PIECE_BYTES));
                continue;
            }
            let (head, rest) = bytes.split_at(bytes.len().min(room));
            self.pieces.last_mut().expect("there is room in it").extend_from_slice(head);
            bytes = rest;
        }
    }

    /// Length in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Copies bytes from `at` on into `out`, as far as there are any.
    pub fn copy(&self, at: u64, mut out: &mut [u8]) {
        let mut skip = usize::try_from(at).unwrap_or(usize::MAX);
        for piece in &self.pieces {
            let from = skip.min(piece.len());
            skip -= from;
            let length = (piece.len() - from).min(out.len());
            let (head, rest) = std::mem::take(&mut out).split_at_mut(length);
            head.copy_from_slice(&piece[from..from + length]);
            out = rest;
        }
    }
}

#[test]
fn pieces_and_runs_come_out_in_order() {
    let mut gathered = Gathered::default();
    gathered.piece(3).copy_from_slice(b"abc");
    gathered.append(b"defg");
    gathered.append(&vec![b'x'; PIECE_BYTES]);
    assert_eq!(gathered.bytes(), 7 + (1 << 20));
    let mut out = [0; 6];
    gathered.copy(1, &mut out);
    assert_eq!(&out, b"bcdefg");
    gathered.copy((1 << 20) + 4, &mut out);
    assert_eq!(&out, b"xxxefg", "what lies behind the end is left alone");
}
