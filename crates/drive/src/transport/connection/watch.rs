//! Timeouts of a host: Keep Alive, Connect and authentication, and data that does not move.
//!
//! It only reports that a connection must close. Invariants: a host that never connects a queue, or
//! never authenticates itself, holds its connection no longer than [`PATIENCE`]; a host that moves
//! no data for [`STALLED_MS_MAX`] does not keep memory; when others wait for the memory, a host
//! that would not be done within that time keeps it for at most two looks.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Context;
use std::time::Duration;

use csd_reactor::{Sleep, sleep};

use super::super::cause::Cause;
use super::super::link::{Link, Motion};
use super::super::session::Session;
use crate::controller::now_ms;

/// Time within which a host must connect a queue, authenticate itself if it must, and receive the
/// final PDU.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two looks at the bytes that a host moved.
const LOOK_MS: u64 = 5_000;
/// Time after which a host that moves no granted data and no answer counts as gone. Hosts give up
/// a command no later than that themselves.
const STALLED_MS_MAX: u64 = 30_000;
/// Bytes between two looks below which data does not count as moving.
const MOVING_BYTES_MIN: usize = 32 << 10;
/// Looks until a host gives a command up. While others wait for memory, the bytes that a host holds
/// must move fast enough to be done by then.
const LOOKS_MAX: usize = (STALLED_MS_MAX / LOOK_MS) as usize;

/// Progress of a host at the last looks.
pub(super) struct Watch {
    timer: Sleep,
    began_ms: u64,
    // Time and result of the last look.
    looked_ms: u64,
    last: Motion,
    // Since when nothing moves, in milliseconds of the drive's clock.
    stalled: Option<u64>,
}

impl Watch {
    /// Starts the timer of a new connection.
    pub(super) fn new() -> Self {
        let (began_ms, timer) = (now_ms(), sleep(Duration::from_millis(LOOK_MS)));
        let last = Motion::default();
        Self { timer, began_ms, looked_ms: began_ms, last, stalled: None }
    }

    /// Returns why the connection must close, if it must. Wakes the task when the next look is due.
    pub(super) fn over(&mut self, link: &Link, cx: &mut Context<'_>) -> Option<Cause> {
        while Pin::new(&mut self.timer).poll(cx).is_ready() {
            let now = now_ms();
            let patient = Duration::from_millis(now - self.began_ms) < PATIENCE;
            if link.auth.is_shut() && !patient {
                return Some(Cause::Unauthenticated);
            }
            if self.has_stalled(link, now) {
                return Some(Cause::Stalled);
            }
            let session = link.session.borrow();
            if matches!(*session, Session::Unconnected) && !patient {
                return Some(Cause::NoConnect);
            }
            let mut wait_ms = self.looked_ms + LOOK_MS - now;
            let limit_ms = session.keep_alive_ms();
            if limit_ms > 0 {
                let heard = session.association().map_or(0, |one| one.heard_ms.load(Relaxed));
                let silent_ms = now.saturating_sub(heard);
                if silent_ms >= limit_ms {
                    return Some(Cause::KeepAlive { timeout_ms: limit_ms });
                }
                wait_ms = wait_ms.min(limit_ms - silent_ms);
            }
            self.timer = sleep(Duration::from_millis(wait_ms.max(1)));
        }
        None
    }

    /// Returns true when granted data or answers have not moved for too long, or move too slowly
    /// while others wait for the memory that they take.
    fn has_stalled(&mut self, link: &Link, now: u64) -> bool {
        if now < self.looked_ms + LOOK_MS {
            return false;
        }
        self.looked_ms = now;
        let motion = link.motion();
        let last = std::mem::replace(&mut self.last, motion);
        // Bytes that were held at both looks. Shorter transfers come and go in between.
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
