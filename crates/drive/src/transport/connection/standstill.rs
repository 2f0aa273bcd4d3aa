//! [`Standstill`]: notices that a host takes none of the answers that wait for it.
//!
//! While much waits to be sent a connection receives nothing, so that a host which is merely slow
//! makes no more work. One that takes nothing at all may have sent its reason behind its commands
//! (H2CTermReq), and must be heard.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use csd_reactor::{Sleep, sleep};

/// Time in which a host that takes answers takes some.
const STANDSTILL: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(super) struct Standstill {
    // Bytes that were sent when the timer started.
    timer: Option<(u64, Sleep)>,
    // Bytes that were sent when nothing moved.
    stood: Option<u64>,
}

impl Standstill {
    /// Returns true if nothing was sent for a while; `sent` is the number of bytes that ever were.
    /// Otherwise wakes the task for another look.
    pub(super) fn lasts(&mut self, sent: u64, cx: &mut Context<'_>) -> bool {
        while self.stood != Some(sent) {
            let (before, timer) = self.timer.get_or_insert_with(|| (sent, sleep(STANDSTILL)));
            if Pin::new(timer).poll(cx).is_pending() {
                return false;
            }
            self.stood = Some(*before).filter(|before| *before == sent);
            self.timer = None;
        }
        true
    }
}
