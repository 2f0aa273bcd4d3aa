//! [`Share`]: how much a connection moves in one poll of its task.
//!
//! A command of a host waits for the poll that is under way. One that carries packets of the tunnel
//! is therefore short while hosts have commands on this core, and long enough to save time while
//! they have none.

use std::time::Duration;

use csd_reactor::{Class, Instant};

/// Turns of the loop in one poll, bytes that they send, and bytes that each receives at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) turns: usize,
    pub(super) bytes: usize,
}

impl Share {
    /// Share of a connection of a host, while other hosts wait for it.
    pub(super) const HOST: Self = Self { turns: 16, bytes: 128 << 10 };
    /// Share while hosts are silent: what is made in one turn leaves in the next.
    const ALONE: Self = Self { turns: 2, bytes: 64 << 10 };
    /// Share next to commands of hosts, chosen by measurement:
    /// docs/decisions/2026-11-26-tunnel-yields-to-hosts.md.
    const NEXT_TO_HOSTS: Self = Self { turns: 1, bytes: 16 << 10 };
}

/// Time after bytes of a host for which more are expected.
const EXPECTED: Duration = Duration::from_millis(1);

/// Knowledge of a connection that yields about the hosts of its core.
pub(super) struct Yielding {
    class: Class,
    // Turns in which hosts' bytes were received, at the last look.
    host_turns: u64,
    // Time at which it differed last.
    changed: Option<Instant>,
}

impl Yielding {
    /// Returns what a connection in a task of `class` begins with.
    pub(super) fn new(class: Class) -> Self {
        Self { class, host_turns: 0, changed: None }
    }

    /// Returns the share for the poll at the time `now`.
    pub(super) fn share(&mut self, host_turns: u64, now: Instant) -> Share {
        if std::mem::replace(&mut self.host_turns, host_turns) != host_turns {
            self.changed = Some(now);
        }
        match self.changed.filter(|_| self.class == Class::Tunnel) {
            Some(changed) if now.since(changed) < EXPECTED => Share::NEXT_TO_HOSTS,
            _ => Share::ALONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_short_while_hosts_send() {
        let begun = Instant::default();
        let mut peer = Yielding::new(Class::Execution);
        assert_eq!(peer.share(1, begun), Share::ALONE);
        let mut yielding = Yielding::new(Class::Tunnel);
        assert_eq!(yielding.share(0, begun), Share::ALONE);
        assert_eq!(yielding.share(1, begun), Share::NEXT_TO_HOSTS);
        let later = begun + EXPECTED;
        assert_eq!(yielding.share(2, later), Share::NEXT_TO_HOSTS);
        assert_eq!(yielding.share(2, later + EXPECTED / 2), Share::NEXT_TO_HOSTS);
        assert_eq!(yielding.share(2, later + EXPECTED), Share::ALONE);
    }
}
