//! The checker: what a host may find after a power cut. It knows nothing of the drive.
//!
//! A key or sector has one certain state (what was acknowledged as durable last) and possible ones
//! (what was asked for since). After a cut exactly one of them must be found; it is certain then.

use std::collections::BTreeMap;

/// A value by its content: `None` is "does not exist".
pub type State = Option<Vec<u8>>;

/// What may be found under one key or in one sector.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    certain: State,
    possible: Vec<State>,
    // The newest state that was acknowledged, durable or not: what a read must return.
    current: State,
    // Asked for since, and not answered.
    unanswered: Vec<State>,
}

/// The model of one namespace, by key or sector number.
#[derive(Debug, Default)]
pub struct Model<K: Ord>(BTreeMap<K, Cell>);

impl<K: Ord + Copy + std::fmt::Debug> Model<K> {
    /// A change is asked for: from now on it may be found.
    pub fn asked(&mut self, key: K, state: State) {
        let cell = self.0.entry(key).or_default();
        cell.possible.push(state.clone());
        cell.unanswered.push(state);
    }

    /// The change was acknowledged: reads must return it.
    pub fn acknowledged(&mut self, key: K, state: State) {
        let cell = self.0.entry(key).or_default();
        cell.current = state;
        // A key has one writer, who waits for one answer after the other.
        cell.unanswered.clear();
    }

    /// The newest acknowledged state is durable: nothing older may be found.
    pub fn durable(&mut self, key: K, state: State) {
        let cell = self.0.entry(key).or_default();
        cell.certain = state;
        cell.possible.clear();
    }

    /// What a read of a running drive must return.
    pub fn current(&self, key: K) -> State {
        self.0.get(&key).and_then(|cell| cell.current.clone())
    }

    /// Every key that was ever asked for.
    pub fn keys(&self) -> Vec<K> {
        self.0.keys().copied().collect()
    }

    /// After a cut `found` was read: it must be allowed, and is certain from now on.
    pub fn recovered(&mut self, key: K, found: State) -> Result<(), String> {
        let cell = self.0.entry(key).or_default();
        if found != cell.certain && !cell.possible.contains(&found) {
            let show = |state: &State| match state {
                None => "nothing".to_owned(),
                Some(bytes) => {
                    format!("{} bytes {:02x?}", bytes.len(), &bytes[..bytes.len().min(8)])
                }
            };
            return Err(format!(
                "{key:?}: found {}, certain was {}, possible were {:?}",
                show(&found),
                show(&cell.certain),
                cell.possible.iter().map(show).collect::<Vec<_>>()
            ));
        }
        cell.certain = found.clone();
        cell.current = found;
        cell.possible.clear();
        cell.unanswered.clear();
        Ok(())
    }

    /// After a lost connection to a drive that kept its power `found` was read: what was
    /// acknowledged last, or what was not answered. It is what reads must return from now on.
    pub fn reconnected(&mut self, key: K, found: State) -> Result<(), String> {
        let cell = self.0.entry(key).or_default();
        if found != cell.current && !cell.unanswered.contains(&found) {
            let unanswered = cell.unanswered.len();
            return Err(format!("{key:?}: lost with its connection; {unanswered} unanswered"));
        }
        cell.current = found;
        cell.unanswered.clear();
        Ok(())
    }
}

#[test]
fn the_checker_can_fail() {
    let mut model = Model::default();
    model.asked(1, Some(vec![1]));
    model.acknowledged(1, Some(vec![1]));
    model.durable(1, Some(vec![1]));
    model.asked(1, Some(vec![2]));
    assert!(model.recovered(1, None).is_err(), "an acknowledged value was lost");
    assert!(model.recovered(1, Some(vec![3])).is_err(), "nobody wrote this");
    assert!(model.recovered(1, Some(vec![2])).is_ok(), "what was asked for may be there");
    assert!(model.recovered(1, Some(vec![1])).is_err(), "but not go away again");
    model.asked(1, None);
    assert!(model.reconnected(1, Some(vec![1])).is_err(), "neither acknowledged nor asked for");
    assert!(model.reconnected(1, None).is_ok(), "not answered, but done");
    assert!(model.reconnected(1, Some(vec![2])).is_err(), "and not undone");
}
