//! Who may change blocks at this moment: many writers, or one fused Compare and Write alone.
//!
//! Writers of a core count themselves in that core's own cell, so that they never meet on a cache
//! line; a fused pair, which is rare, closes the gate for all cores and waits until those inside
//! have left. Never: the media. Invariants: while a pair is inside nobody else is; a writer inside
//! has finished before a pair enters.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use csd_reactor::sleep;

/// Wait before another look at a gate that is closed or not yet empty.
const PAUSE: Duration = Duration::from_micros(20);

/// A cell on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Cell(AtomicUsize);

/// The gate of one namespace, shared by all cores.
#[derive(Debug)]
pub struct Gate {
    // Writers inside, by core.
    inside: Vec<Cell>,
    closed: AtomicBool,
}

impl Gate {
    /// An open gate for this many cores.
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
        // Counted before the look at the gate, while a pair looks in the other order: at least
        // one of the two sees the other.
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

/// A writer inside; leaves when dropped.
#[derive(Debug)]
pub struct Inside<'a>(&'a AtomicUsize);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// The only one inside; opens the gate when dropped.
#[derive(Debug)]
pub struct Alone<'a>(&'a AtomicBool);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}
