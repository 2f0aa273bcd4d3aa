//! [`Unauthenticated`]: connections whose hosts have not authenticated themselves, on a drive that
//! has secrets.
//!
//! They fill at most half of the drive's connections and controllers. When that half is full, the
//! oldest connection of the address that has most gives way to a new one; connections of hosts that
//! need no authentication give way last. This module only chooses; its callers close connections.
//! Invariant: a connection is here until its host has authenticated itself, it gives way, or it has
//! ended.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use csd_reactor::CoreId;

use crate::controller::{CONTROLLERS_MAX, ConnectionId};

/// Most unauthenticated connections that are waited for to receive the final PDU after they broke a
/// rule.
const LINGERING_MAX: usize = 32;

/// The unauthenticated connections of a drive.
#[derive(Debug, Default)]
pub struct Unauthenticated(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    // By number, and so by age.
    all: BTreeMap<u64, Connection>,
    // Those that were asked to end and have not ended yet.
    leaving: BTreeSet<u64>,
    // Those whose final PDU is being sent.
    lingering: BTreeSet<u64>,
}

#[derive(Debug)]
struct Connection {
    core: CoreId,
    origin: IpAddr,
    // Its host needs no authentication.
    settled: bool,
}

impl Unauthenticated {
    /// Returns how many of `open` connections count: those that give way do not.
    pub fn count(&self, open: usize) -> usize {
        let state = self.state();
        open.saturating_sub(state.leaving.len() + state.lingering.len())
    }

    /// Chooses the connection that gives way to another one, when `open` of `most` count.
    pub fn give_way(&self, open: usize, most: usize) -> Option<ConnectionId> {
        let mut state = self.state();
        let share = (most / 2).min(usize::from(CONTROLLERS_MAX) / 2).max(1);
        let is_full = state.all.len() >= share;
        let number = match state.oldest(false) {
            Some(number) if is_full || open >= most => number,
            None if is_full => state.oldest(true)?,
            _ => return None,
        };
        let connection = state.all.remove(&number)?;
        state.leaving.insert(number);
        Some((connection.core, number))
    }

    /// Adds a new connection from an address.
    pub fn enter(&self, (core, number): ConnectionId, origin: IpAddr) {
        self.state().all.insert(number, Connection { core, origin, settled: false });
    }

    /// Returns true when the connection must give way.
    pub fn must_leave(&self, number: u64) -> bool {
        self.state().leaving.contains(&number)
    }

    /// Notes that its host has connected and needs no authentication.
    pub fn settle(&self, number: u64) {
        if let Some(connection) = self.state().all.get_mut(&number) {
            connection.settled = true;
        }
    }

    /// Returns true if a connection whose host broke a rule is kept until the host has received the
    /// final PDU. Of unauthenticated ones only `LINGERING_MAX` are kept at once.
    pub fn may_linger(&self, number: u64) -> bool {
        let mut state = self.state();
        if state.all.remove(&number).is_none() {
            return !state.leaving.contains(&number);
        }
        let may = state.lingering.len() < LINGERING_MAX;
        if may {
            state.lingering.insert(number);
        }
        may
    }

    /// Removes a connection whose host has authenticated itself, or that has ended.
    pub fn remove(&self, number: u64) {
        let mut state = self.state();
        state.all.remove(&number);
        state.leaving.remove(&number);
        state.lingering.remove(&number);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the oldest connection of the address that has most.
    fn oldest(&self, settled: bool) -> Option<u64> {
        let mut origins: BTreeMap<IpAddr, (usize, u64)> = BTreeMap::new();
        let these = self.all.iter().filter(|(_, connection)| connection.settled == settled);
        for (number, connection) in these {
            origins.entry(connection.origin).or_insert((0, *number)).0 += 1;
        }
        let most = origins.values().max_by_key(|(count, oldest)| (*count, u64::MAX - oldest));
        most.map(|(_, oldest)| *oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn the_oldest_of_the_fullest_address_gives_way() {
        let connections = Unauthenticated::default();
        connections.enter((CoreId(0), 1), address(1));
        for number in 2..8 {
            assert_eq!(connections.give_way(7, 16), None);
            connections.enter((CoreId(1), number), address(2));
        }
        connections.enter((CoreId(0), 8), address(1));
        assert_eq!(connections.give_way(8, 16), Some((CoreId(1), 2)), "a half of 16 is there");
        assert!(connections.must_leave(2) && !connections.must_leave(1));
        assert_eq!(connections.count(9), 8, "one is leaving");
        connections.remove(2);
        assert_eq!((connections.count(8), connections.must_leave(2)), (8, false));
        assert_eq!(connections.give_way(8, 16), None);
        assert_eq!(
            connections.give_way(16, 16),
            Some((CoreId(1), 3)),
            "the others are proved ones"
        );
    }

    #[test]
    fn few_linger() {
        let connections = Unauthenticated::default();
        (0..40).for_each(|number| connections.enter((CoreId(0), number), address(1)));
        let lingering = (0..40).filter(|number| connections.may_linger(*number)).count();
        assert_eq!((lingering, connections.count(40)), (LINGERING_MAX, 40 - LINGERING_MAX));
        connections.remove(0);
        connections.enter((CoreId(0), 41), address(1));
        assert!(
            connections.may_linger(41) && connections.may_linger(99),
            "one that has proved itself"
        );
    }

    #[test]
    fn those_who_have_nothing_to_prove_give_way_last() {
        let connections = Unauthenticated::default();
        (1..=4).for_each(|number| connections.enter((CoreId(0), number), address(1)));
        (1..=3).for_each(|number| connections.settle(number));
        assert_eq!(connections.give_way(4, 8), Some((CoreId(0), 4)));
        assert_eq!(
            connections.give_way(8, 8),
            None,
            "settled ones only for the half that is theirs"
        );
        connections.enter((CoreId(0), 5), address(1));
        connections.settle(5);
        assert_eq!(connections.give_way(5, 8), Some((CoreId(0), 1)));
    }
}
