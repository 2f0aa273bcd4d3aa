//! [`WorldConfig`]: parameters of a world.

use std::ops::Range;

/// Parameters of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldConfig {
    /// Range of the network's one-way delay, µs; drawn for each segment.
    pub latency_us: Range<u64>,
    /// Maximum bytes that one receive returns; the actual number is drawn.
    pub segment_bytes_max: usize,
    /// Maximum bytes in flight or unread in one direction of a connection.
    pub window_bytes: usize,
    /// CPU time charged for each poll of a task and each message, ns, besides what it charges
    /// itself ([`crate::charge`]).
    pub cpu_ns_per_poll: u64,
    /// True if ready tasks of one class are polled in the order in which they became ready, as a
    /// real core does. Otherwise the next one is drawn, so that seeds meet more orders.
    pub oldest_first: bool,
}

impl Default for WorldConfig {
    fn default() -> Self {
        Self {
            latency_us: 20..200,
            segment_bytes_max: 16 << 10,
            window_bytes: 128 << 10,
            cpu_ns_per_poll: 500,
            oldest_first: false,
        }
    }
}
