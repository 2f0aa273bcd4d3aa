//! Memory as a medium, shared by all cores.
//!
//! Stripes of 64 KiB are allocated when first written and locked for the time of one copy, so a
//! reader sees an aligned write of up to a stripe whole or not at all. Two cores wait for each
//! other only when they access one stripe at the same moment. No system call is made.

use std::ops::Range;
use std::sync::RwLock;

use csd_reactor::worked;

use super::Failures;

/// Bytes under one lock.
const STRIPE_BYTES: usize = 64 << 10;

type Stripe = RwLock<Option<Box<[u8]>>>;

/// A medium of zeros until written.
pub struct Memory {
    stripes: Vec<Stripe>,
    bytes: u64,
    failures: Failures,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory({} bytes)", self.bytes)
    }
}

impl Memory {
    /// Makes a medium of `bytes` bytes, and allocates nothing yet.
    pub fn new(bytes: u64) -> Self {
        let count = bytes.div_ceil(STRIPE_BYTES as u64);
        let stripes = (0..count).map(|_| Stripe::default()).collect();
        Self { stripes, bytes, failures: Failures::default() }
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the failures, of which it has none of its own.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Returns another medium with the same bytes.
    pub fn copied(&self) -> Self {
        let copy = |stripe: &Stripe| {
            RwLock::new(stripe.read().unwrap_or_else(|error| error.into_inner()).clone())
        };
        let stripes = self.stripes.iter().map(copy).collect();
        Self { stripes, bytes: self.bytes, failures: Failures::default() }
    }

    /// Returns the ranges that were written, whole stripes, in order; the rest reads as zeros.
    pub fn written(&self) -> Vec<Range<u64>> {
        let mut written: Vec<Range<u64>> = Vec::new();
        for (number, stripe) in (0u64..).zip(&self.stripes) {
            if stripe.read().unwrap_or_else(|error| error.into_inner()).is_none() {
                continue;
            }
            let from = number * STRIPE_BYTES as u64;
            let to = self.bytes.min(from + STRIPE_BYTES as u64);
            match written.last_mut().filter(|last| last.end == from) {
                Some(last) => last.end = to,
                None => written.push(from..to),
            }
        }
        written
    }

    /// Fills `into` from `offset` on; the range must be on the medium.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        worked(into.len() as u64);
        for_stripes(offset, into.len(), |stripe, within, range| {
            let into = &mut into[range];
            // A lock is poisoned only by a panic inside a copy, which cannot happen.
            let guard = self.stripes[stripe].read().unwrap_or_else(|error| error.into_inner());
            match &*guard {
                Some(bytes) => into.copy_from_slice(&bytes[within..within + into.len()]),
                None => into.fill(0),
            }
        });
    }

    /// Writes `from` at `offset`; the range must be on the medium.
    pub fn write(&self, offset: u64, from: &[u8]) {
        worked(from.len() as u64);
        for_stripes(offset, from.len(), |stripe, within, range| {
            let from = &from[range];
            let mut guard = self.stripes[stripe].write().unwrap_or_else(|error| error.into_inner());
            let bytes = guard.get_or_insert_with(|| vec![0; STRIPE_BYTES].into_boxed_slice());
            bytes[within..within + from.len()].copy_from_slice(from);
        });
    }

    /// Makes a range read as zeros, and frees whole stripes. The range must be on the medium.
    pub fn discard(&self, offset: u64, bytes: u64) {
        let length = usize::try_from(bytes).expect("memory media fit into memory");
        for_stripes(offset, length, |stripe, within, range| {
            let mut guard = self.stripes[stripe].write().unwrap_or_else(|error| error.into_inner());
            match &mut *guard {
                whole if range.len() == STRIPE_BYTES => *whole = None,
                Some(bytes) => bytes[within..within + range.len()].fill(0),
                None => {}
            }
        });
    }
}

/// Calls `visit(stripe, offset within it, range of the caller's bytes)` for each stripe touched.
fn for_stripes(offset: u64, length: usize, mut visit: impl FnMut(usize, usize, Range<usize>)) {
    let mut at = usize::try_from(offset).expect("memory media fit into memory");
    let mut done = 0;
    while done < length {
        let within = at % STRIPE_BYTES;
        let count = (STRIPE_BYTES - within).min(length - done);
        visit(at / STRIPE_BYTES, within, done..done + count);
        at += count;
        done += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_across_stripes_read_back_and_holes_are_zero() {
        let memory = Memory::new(3 * STRIPE_BYTES as u64 + 17);
        let data: Vec<u8> =
            (0..STRIPE_BYTES + 100).map(|i| u8::try_from(i % 251).unwrap()).collect();
        memory.write(STRIPE_BYTES as u64 - 50, &data);
        let mut back = vec![0xFF; data.len() + 100];
        memory.read(STRIPE_BYTES as u64 - 100, &mut back);
        assert!(back[..50].iter().all(|byte| *byte == 0));
        assert_eq!(&back[50..50 + data.len()], &data[..]);
        let written = memory.written();
        assert_eq!((written.len(), &written[0]), (1, &(0..3 * STRIPE_BYTES as u64)));
        assert!(back[50 + data.len()..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn what_is_discarded_is_zero_and_its_neighbours_are_not() {
        let stripe = STRIPE_BYTES as u64;
        let memory = Memory::new(4 * stripe);
        memory.write(0, &vec![7; 4 * STRIPE_BYTES]);
        memory.discard(stripe - 10, 2 * stripe);
        let mut back = vec![0; 4 * STRIPE_BYTES];
        memory.read(0, &mut back);
        let (start, end) = (STRIPE_BYTES - 10, 3 * STRIPE_BYTES - 10);
        assert!(back[..start].iter().chain(&back[end..]).all(|byte| *byte == 7));
        assert!(back[start..end].iter().all(|byte| *byte == 0));
        assert!(memory.stripes[1].read().unwrap().is_none(), "a whole stripe is given back");
    }
}
