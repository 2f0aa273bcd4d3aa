//! [`WriteGate`]: a lock that many writers of blocks share, or one fused Compare and Write has
//! alone.
//!
//! Writers of a core count themselves in that core's own cell, so that they never meet on a cache
//! line. A fused pair, which is rare, closes the gate for all cores and waits until those inside
//! have left. Invariants: while a pair is inside no other writer is; a writer inside has finished
//! before a pair enters.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use csd_reactor::sleep;

/// Pause between two looks at a gate that is closed or not yet empty.
const PAUSE: Duration = Duration::from_micros(20);

/// A cell on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Cell(AtomicUsize);

/// Gate of one namespace, shared by all cores.
#[derive(Debug)]
pub struct WriteGate {
    // Writers inside, by core.
    inside: Vec<Cell>,
    closed: AtomicBool,
}

impl WriteGate {
    /// Makes an open gate for this many cores.
    pub fn new(cores: usize) -> Self {
        Self {
            inside: (0..cores).map(|_| Cell::default()).collect(),
            closed: AtomicBool::default(),
        }
    }

    /// Enters as a writer of `core`.
    pub async fn enter(&self, core: usize) -> Inside<'_> {
        loop {
            if let Some(inside) = self.try_enter(core) {
                return inside;
            }
            sleep(PAUSE).await;
        }
    }

    /// Enters as a writer of `core`, unless the gate is closed.
    pub fn try_enter(&self, core: usize) -> Option<Inside<'_>> {
        // The count comes before the look at the gate, and a pair does both in the other order: at
        // least one of the two sees the other.
        let inside = Inside(&self.inside[core].0);
        inside.0.fetch_add(1, SeqCst);
        (!self.closed.load(SeqCst)).then_some(inside)
    }

    /// Enters alone.
    pub async fn enter_alone(&self) -> Alone<'_> {
        while self.closed.swap(true, SeqCst) {
            sleep(PAUSE).await;
        }
        let alone = Alone(&self.closed);
        while self.inside.iter().any(|cell| cell.0.load(SeqCst) > 0) {
            sleep(PAUSE).await;
        }
        alone
    }
}

/// A guard of a writer inside, which leaves when the guard is dropped.
#[derive(Debug)]
pub struct Inside<'a>(&'a AtomicUsize);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// A guard of the only one inside. The gate opens when the guard is dropped.
#[derive(Debug)]
pub struct Alone<'a>(&'a AtomicBool);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}
