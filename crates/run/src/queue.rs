//! The work of a run: for every member, the units that are not taken yet.
//!
//! A unit is a chunk or a part. A drive takes ranges of its own units from the front, the host
//! single units from the back of the longest pile, until all piles are empty. Where answers are
//! consumed in their order, the host takes the first unit that is left. Performs no I/O.
//! Invariants: every unit is taken exactly once, by one side; units that are taken together are of
//! one run.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use csd_store::layout::Run;

/// Units of one member, by their index among that member's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) member: usize,
    pub(crate) run: Run,
}

/// Units of one member.
type Pile = VecDeque<Run>;

/// Work shared by the cores of a run.
pub(crate) struct Queue {
    piles: Mutex<Vec<Pile>>,
    /// Units that drives have failed to process, for the host.
    returned: Mutex<Vec<Taken>>,
    stopped: AtomicBool,
    /// True if answers are consumed in the order of the units.
    in_order: bool,
}

fn count(run: &Run) -> u32 {
    run.locals.end - run.locals.start
}

fn height(pile: &Pile) -> u32 {
    pile.iter().map(count).sum()
}

/// Takes `units` off the front of a run.
fn split(run: &mut Run, units: u32) -> Run {
    let middle = run.locals.start + units;
    let front = Run { locals: run.locals.start..middle, ..run.clone() };
    run.locals.start = middle;
    run.first += units * run.stride;
    run.number += units * run.stride;
    front
}

/// Takes up to `units` units off the front of a pile, all of one run.
fn take_front(pile: &mut Pile, units: u32) -> Option<Run> {
    let run = pile.front_mut()?;
    if count(run) <= units { pile.pop_front() } else { Some(split(run, units)) }
}

/// Takes the first unit of all that are left.
fn take_first(piles: &mut [Pile], returned: &mut Vec<Taken>) -> Option<Taken> {
    let fronts = piles.iter().enumerate();
    let front = fronts.filter_map(|(member, pile)| Some((pile.front()?.first, member))).min();
    let back = returned.iter().enumerate().map(|(at, taken)| (taken.run.first, at)).min();
    if let Some((first, at)) = back
        && front.is_none_or(|(other, _)| first < other)
    {
        return Some(returned.swap_remove(at));
    }
    let (_, member) = front?;
    Some(Taken { member, run: take_front(&mut piles[member], 1)? })
}

impl Queue {
    /// Returns a queue of these piles, one for each member.
    pub(crate) fn new(piles: Vec<Vec<Run>>) -> Self {
        let piles = piles.into_iter().map(Pile::from).collect();
        let (returned, stopped) = (Mutex::default(), AtomicBool::new(false));
        Self { piles: Mutex::new(piles), returned, stopped, in_order: false }
    }

    /// Returns the queue for answers that are consumed in the order of the units, or not.
    pub(crate) fn with_order(self, in_order: bool) -> Self {
        Self { in_order, ..self }
    }

    /// Takes the next units for `member`: a `part`-th of the rest, so that ranges get smaller
    /// towards the end, at least one and at most `most`.
    pub(crate) fn take_for_drive(&self, member: usize, part: u32, most: u32) -> Option<Taken> {
        let mut piles = self.lock()?;
        let pile = &mut piles[member];
        let units = height(pile).div_ceil(part).clamp(1, most);
        Some(Taken { member, run: take_front(pile, units)? })
    }

    /// Takes one unit for the host: the first one, or one of the member with the most units left.
    pub(crate) fn take_for_host(&self) -> Option<Taken> {
        let mut piles = self.lock()?;
        if self.in_order {
            return take_first(&mut piles, &mut self.returned());
        }
        if let Some(returned) = self.returned().pop() {
            return Some(returned);
        }
        let (member, pile) = piles.iter_mut().enumerate().max_by_key(|(_, pile)| height(pile))?;
        let last = pile.back_mut()?;
        let left = count(last) - 1;
        if left == 0 {
            return Some(Taken { member, run: pile.pop_back()? });
        }
        let front = split(last, left);
        let run = std::mem::replace(last, front);
        Some(Taken { member, run })
    }

    /// Gives units back that a drive has failed to process; only the host takes them.
    pub(crate) fn give_to_host(&self, taken: Option<&Taken>) {
        let Some(Taken { member, run }) = taken else { return };
        let (member, mut rest) = (*member, run.clone());
        while !rest.locals.is_empty() {
            self.returned().push(Taken { member, run: split(&mut rest, 1) });
        }
    }

    /// Returns true if there are units that have not been taken.
    pub(crate) fn has_units(&self) -> bool {
        let Some(piles) = self.lock() else { return false };
        piles.iter().any(|pile| !pile.is_empty()) || !self.returned().is_empty()
    }

    fn returned(&self) -> MutexGuard<'_, Vec<Taken>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all remaining units of a member whose drive is lost.
    pub(crate) fn abandon(&self, member: usize) -> Vec<Run> {
        self.lock().map_or_else(Vec::new, |mut piles| piles[member].drain(..).collect())
    }

    /// Stops the queue after a failure: later takes return nothing.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns true if the queue was stopped after a failure.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn lock(&self) -> Option<MutexGuard<'_, Vec<Pile>>> {
        // Piles are consistent even after a panic of another holder: no code above panics midway.
        let piles = self.piles.lock().unwrap_or_else(PoisonError::into_inner);
        (!self.is_stopped()).then_some(piles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use csd_store::layout::{Kind, Layout, Part, Parts, Spread};

    fn queue(layout: &Layout, members: usize) -> Queue {
        Queue::new((0..members).map(|member| layout.runs(member)).collect())
    }

    fn spread(chunks: u64, members: u16) -> Layout {
        let (bytes, offset) = (chunks * 4096, 1 % members);
        Layout::Spread(Spread { bytes, chunk_bytes: 4096, members, offset })
    }

    fn parts(members: u16) -> Layout {
        let part = |part: u16| Part {
            member: part % members,
            number: u32::from(part) * 100,
            bytes: u64::from(part % 5) * 5000,
            mark: 0,
        };
        let parts = (0..40).map(part).collect();
        Layout::Parts(Parts::new(Kind::Range, 4096, members, parts).unwrap().unwrap())
    }

    #[test]
    fn both_sides_together_take_every_chunk_once_with_its_number() {
        let spreads = [(0, 1), (1, 3), (17, 1), (100, 4), (1000, 3)];
        let spreads = spreads.map(|(chunks, members)| (spread(chunks, members), members));
        for (layout, members) in spreads.into_iter().chain([1, 3].map(|m| (parts(m), m))) {
            let queue = queue(&layout, members.into());
            let mut seen = vec![0; layout.chunks() as usize];
            let mut turn = 0;
            loop {
                turn += 1;
                let member = turn % usize::from(members);
                let taken = match turn % 3 {
                    0 => queue.take_for_host(),
                    _ => queue.take_for_drive(member, 8, 5).or_else(|| queue.take_for_host()),
                };
                let Some(taken) = taken else { break };
                assert!((1..=5).contains(&count(&taken.run)));
                for step in 0..count(&taken.run) {
                    let chunk = taken.run.first + step * taken.run.stride;
                    let local = taken.run.locals.start + step;
                    assert_eq!(layout.chunk(taken.member, local), chunk);
                    assert_eq!(layout.number(chunk), taken.run.number + step * taken.run.stride);
                    seen[chunk as usize] += 1;
                }
            }
            assert!(seen.iter().all(|&times| times == 1), "{seen:?}");
        }
    }

    #[test]
    fn units_that_come_back_are_the_hosts_one_by_one() {
        let queue = queue(&spread(10, 1), 1);
        let taken = queue.take_for_drive(0, 1, 3).unwrap();
        queue.give_to_host(Some(&taken));
        while queue.take_for_drive(0, 1, 100).is_some() {}
        assert!(queue.has_units());
        let back: Vec<_> = std::iter::from_fn(|| queue.take_for_host()).collect();
        assert_eq!(back.iter().map(|taken| taken.run.first).collect::<Vec<_>>(), [2, 1, 0]);
        assert!(back.iter().all(|taken| count(&taken.run) == 1) && !queue.has_units());
    }

    #[test]
    fn where_order_counts_the_host_takes_the_first_unit_that_is_left() {
        let queue = queue(&spread(10, 3), 3).with_order(true);
        let taken = queue.take_for_drive(1, 1, 1).unwrap();
        let first = taken.run.first;
        assert_eq!(queue.take_for_host().map(|taken| taken.run.first), Some(u32::from(first == 0)));
        queue.give_to_host(Some(&taken));
        let rest: Vec<_> = std::iter::from_fn(|| queue.take_for_host()).collect();
        assert!(rest.is_sorted_by_key(|taken| taken.run.first) && rest.len() == 9, "{rest:?}");
    }

    #[test]
    fn ranges_shrink_towards_the_end() {
        let queue = queue(&spread(64, 1), 1);
        let sizes: Vec<_> =
            std::iter::from_fn(|| queue.take_for_drive(0, 8, 256)).map(|t| count(&t.run)).collect();
        assert_eq!(sizes[0], 8);
        assert!(sizes.windows(2).all(|pair| pair[0] >= pair[1]), "{sizes:?}");
        assert_eq!((sizes.last(), sizes.iter().sum()), (Some(&1), 64));
    }

    #[test]
    fn a_stopped_queue_is_empty_and_a_lost_member_leaves_the_others_theirs() {
        let queue = queue(&spread(10, 2), 2);
        let left: u32 = queue.abandon(1).iter().map(count).sum();
        assert_eq!((left, queue.take_for_drive(1, 8, 256)), (5, None));
        assert_eq!(queue.take_for_host().map(|taken| taken.member), Some(0));
        queue.stop();
        assert_eq!(queue.take_for_host(), None);
        assert_eq!(queue.take_for_drive(0, 8, 256), None);
        assert!(queue.abandon(0).is_empty());
    }
}
