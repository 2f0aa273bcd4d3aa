//! Patience with a host: how long it may say nothing, and what it owes may stand still.
//!
//! It closes nothing; it says when that is due. Invariants: a host that never connects a queue, or
//! never authenticates itself, holds its connection no longer than [`PATIENCE`]; memory that
//! nobody waits for is not held by a host that does not move for [`STALLED_MS_MAX`]; memory that
//! others wait for is held for at most two looks by a host that would not be done within that time.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Context;
use std::time::Duration;

use csd_reactor::{Sleep, sleep};

use super::super::link::{Link, Motion};
use super::super::session::{Session, now_ms};

/// A host must have connected a queue, and authenticated itself if it must, within this time, and
/// take a last word within it.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two looks at what a host moves.
const LOOK_MS: u64 = 5_000;
/// A host that does not move for this long what it was granted, or what waits for it, is gone.
/// Hosts give up a command no later than that themselves.
const STALLED_MS_MAX: u64 = 30_000;
/// Data that moves slower than this between two looks does not move.
const MOVING_BYTES_MIN: usize = 32 << 10;
/// Looks until a host gives a command up: while others wait, what a host holds must move at the
/// pace at which all of it has moved by then.
const LOOKS_MAX: usize = (STALLED_MS_MAX / LOOK_MS) as usize;

/// What is known of a host's pace.
pub(super) struct Watch {
    timer: Sleep,
    began_ms: u64,
    // The last look, and what it saw.
    looked_ms: u64,
    last: Motion,
    // Since when nothing moves, in milliseconds of the drive's clock.
    stalled: Option<u64>,
}

impl Watch {
    /// Begins with the connection.
    pub(super) fn new() -> Self {
        let (began_ms, timer) = (now_ms(), sleep(Duration::from_millis(LOOK_MS)));
        let last = Motion::default();
        Self { timer, began_ms, looked_ms: began_ms, last, stalled: None }
    }

    /// True when patience is over. Wakes the task when it is to be asked again.
    pub(super) fn is_over(&mut self, link: &Link, cx: &mut Context<'_>) -> bool {
        while Pin::new(&mut self.timer).poll(cx).is_ready() {
            let now = now_ms();
            let patient = Duration::from_millis(now - self.began_ms) < PATIENCE;
            if (link.gate.is_shut() && !patient) || self.has_stalled(link, now) {
                return true;
            }
            let session = link.session.borrow();
            if matches!(*session, Session::Unconnected) && !patient {
                return true;
            }
            let mut wait_ms = self.looked_ms + LOOK_MS - now;
            let limit_ms = session.keep_alive_ms();
            if limit_ms > 0 {
                let heard = session.association().map_or(0, |one| one.heard_ms.load(Relaxed));
                let silent_ms = now.saturating_sub(heard);
                if silent_ms >= limit_ms {
                    return true;
                }
                wait_ms = wait_ms.min(limit_ms - silent_ms);
            }
            self.timer = sleep(Duration::from_millis(wait_ms.max(1)));
        }
        false
    }

    /// True when granted data or answers have not moved for too long, or move too slowly for those
    /// who wait for the memory that they take.
    fn has_stalled(&mut self, link: &Link, now: u64) -> bool {
        if now < self.looked_ms + LOOK_MS {
            return false;
        }
        self.looked_ms = now;
        let motion = link.motion();
        let last = std::mem::replace(&mut self.last, motion);
        // What was held at both looks: shorter transfers come and go in between.
        let granted = last.granted_bytes.min(motion.granted_bytes);
        let queued = last.queued.min(motion.queued);
        let slow = |held: usize, moved: usize| moved < held / LOOKS_MAX;
        if link.others_wait() && (slow(granted, motion.received) || slow(queued, motion.sent)) {
            return true;
        }
        let same = last.granted.is_some() && last.granted == motion.granted;
        let stalls = (same && motion.received < MOVING_BYTES_MIN)
            || (queued > 0 && motion.sent < MOVING_BYTES_MIN);
        if !stalls {
            self.stalled = None;
            return false;
        }
        now - *self.stalled.get_or_insert(now) >= STALLED_MS_MAX
    }
}
