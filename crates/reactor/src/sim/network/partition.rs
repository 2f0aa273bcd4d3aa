//! Partitions: what two machines send each other waits until the partition ends, as TCP repeats
//! it, unless an end has given up by then.
//!
//! Invariant: bytes of one direction keep their order across a partition.

use crate::sim::sockets::{NetEvent, Pair};
use crate::sim::state::{Event, State, Trace};

impl State {
    /// Holds back everything between two machines, or delivers it from now on.
    pub(crate) fn set_partition(&mut self, one: usize, other: usize, parted: bool) {
        self.trace(Trace::Partition, one, other, parted.into());
        let pair = (one.min(other), one.max(other));
        if parted {
            self.partitions.parted.insert(pair);
            return;
        }
        self.partitions.parted.remove(&pair);
        let held = std::mem::take(&mut self.partitions.held);
        for (between, event) in held {
            if between == pair {
                // At once and in order: what is sent from now on arrives later.
                self.schedule(0, Event::Net(event));
            } else {
                self.partitions.held.push((between, event));
            }
        }
    }

    /// Returns the event if it arrives now; keeps it if a partition is in its way.
    pub(crate) fn cross(&mut self, event: NetEvent) -> Option<NetEvent> {
        if self.partitions.parted.is_empty() {
            return Some(event);
        }
        match self.ends_of(&event).filter(|ends| self.partitions.parted.contains(ends)) {
            Some(ends) => {
                self.partitions.held.push((ends, event));
                None
            }
            None => Some(event),
        }
    }

    /// Returns the machines between which something travels; `None` if its receiver is gone, or on
    /// the same machine by a Unix socket.
    fn ends_of(&mut self, event: &NetEvent) -> Option<Pair> {
        let receiver = match event {
            NetEvent::Connect { client, .. }
            | NetEvent::Accepted { client, .. }
            | NetEvent::Refused { client, .. } => *client,
            NetEvent::Data { to, .. }
            | NetEvent::Credit { to, .. }
            | NetEvent::Fin { to }
            | NetEvent::Reset { to } => *to,
        };
        let stream = self.net.stream(receiver).ok()?;
        let (one, remote) = (stream.machine, stream.remote.as_ref()?.ip()?);
        let other = self.machine_at(remote.ip())?;
        Some((one.min(other), one.max(other)))
    }
}
