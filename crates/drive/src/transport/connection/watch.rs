//! Patience with a host: how long it may say nothing, and what it owes may stand still.
//!
//! Never: closes anything; it says when that is due. Invariants: a host that never connects a
//! queue, or never authenticates itself, holds its connection no longer than [`PATIENCE`]; memory
//! that others wait for is not held by one that does not move.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Context;
use std::time::Duration;

use csd_reactor::{Sleep, sleep};

use super::super::link::Link;
use super::super::session::{Session, now_ms};

/// A host must have connected a queue, and authenticated itself if it must, within this time, and
/// take a last word within it.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// A host that does not move for this long what it was granted, or what waits for it, is gone: it
/// holds memory that others wait for. Hosts give up a command no later than that themselves.
const STALLED_MS_MAX: u64 = 30_000;
/// Granted data that comes slower than this in [`PATIENCE`] does not move.
const MOVING_BYTES_MIN: usize = 64 << 10;

/// What is known of a host's pace.
pub(super) struct Watch {
    timer: Sleep,
    // Since when nothing moves, in milliseconds of the drive's clock, and the grant looked at.
    stalled: Option<u64>,
    granted: Option<u64>,
}

impl Watch {
    /// Begins with the connection.
    pub(super) fn new() -> Self {
        Self { timer: sleep(PATIENCE), stalled: None, granted: None }
    }

    /// True when patience is over. Wakes the task when it is to be asked again.
    pub(super) fn is_over(&mut self, link: &Link, cx: &mut Context<'_>) -> bool {
        while Pin::new(&mut self.timer).poll(cx).is_ready() {
            if link.gate.is_shut() || self.has_stalled(link) {
                return true;
            }
            let session = link.session.borrow();
            if matches!(*session, Session::Unconnected) {
                return true;
            }
            // Without a limit it is looked at again at leisure: a host may set one later.
            let wait = match session.keep_alive_ms() {
                0 => PATIENCE,
                limit_ms => {
                    let heard = session.association().map_or(0, |one| one.heard_ms.load(Relaxed));
                    let silent_ms = now_ms().saturating_sub(heard);
                    if silent_ms >= limit_ms {
                        return true;
                    }
                    Duration::from_millis((limit_ms - silent_ms).max(1)).min(PATIENCE)
                }
            };
            self.timer = sleep(wait);
        }
        false
    }

    /// True when granted data or answers have not moved for too long.
    fn has_stalled(&mut self, link: &Link) -> bool {
        let motion = link.motion();
        let same = self.granted.is_some() && self.granted == motion.granted;
        self.granted = motion.granted;
        let stalls =
            (same && motion.received < MOVING_BYTES_MIN) || (motion.sending && motion.sent == 0);
        if !stalls {
            self.stalled = None;
            return false;
        }
        let now = now_ms();
        now - *self.stalled.get_or_insert(now) >= STALLED_MS_MAX
    }
}
