//! The checker: a model of the data that a host may find after a power cut. It knows nothing of the
//! drive.
//!
//! A key or sector has one certain state (the last one acknowledged as durable) and possible ones
//! (requested since). After a cut the host must find exactly one of them, which is certain from
//! then on.

use std::collections::BTreeMap;

/// A value by its content: `None` is "does not exist".
pub type State = Option<Vec<u8>>;

/// States that may be found under one key or in one sector.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    certain: State,
    possible: Vec<State>,
    // The newest state that was acknowledged, durable or not: what a read must return.
    current: State,
    // Requested since, and not answered.
    unanswered: Vec<State>,
}

/// The model of one namespace, by key or sector number.
#[derive(Clone, Debug, Default)]
pub struct Model<K: Ord>(BTreeMap<K, Cell>);

impl<K: Ord + Copy + std::fmt::Debug> Model<K> {
    /// Records a requested change: from now on it may be found.
    pub fn asked(&mut self, key: K, state: State) {
        let cell = self.0.entry(key).or_default();
        cell.possible.push(state.clone());
        cell.unanswered.push(state);
    }

    /// Records an acknowledged change: reads must return it.
    pub fn acknowledged(&mut self, key: K, state: State) {
        let cell = self.0.entry(key).or_default();
        cell.current = state;
        // A key has one writer, which waits for each answer.
        cell.unanswered.clear();
    }

    /// Records that the newest acknowledged state is durable: no older one may be found. A change
    /// that failed since may have been done.
    pub fn durable(&mut self, key: K, state: State) {
        let cell = self.0.entry(key).or_default();
        cell.certain = state;
        cell.possible.clone_from(&cell.unanswered);
    }

    /// Returns true if no change since the last acknowledged one failed.
    pub fn is_settled(&self, key: K) -> bool {
        self.0.get(&key).is_none_or(|cell| cell.unanswered.is_empty())
    }

    /// Returns the state that a read of a running drive must return.
    pub fn current(&self, key: K) -> State {
        self.0.get(&key).and_then(|cell| cell.current.clone())
    }

    /// Returns every key for which a change was requested.
    pub fn keys(&self) -> Vec<K> {
        self.0.keys().copied().collect()
    }

    /// Checks the state read after a cut: it must be allowed, and is certain from now on.
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

    /// Checks the state read after a lost connection to a drive that kept its power: the last
    /// acknowledged one, or an unanswered one. Reads must return it from now on.
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
    model.asked(1, Some(vec![4]));
    model.durable(1, Some(vec![2]));
    assert!(!model.is_settled(1));
    assert!(model.recovered(1, Some(vec![4])).is_ok(), "it failed, and was done all the same");
    model.asked(1, Some(vec![2]));
    model.acknowledged(1, Some(vec![2]));
    model.asked(1, None);
    assert!(model.reconnected(1, Some(vec![1])).is_err(), "neither acknowledged nor asked for");
    assert!(model.reconnected(1, None).is_ok(), "not answered, but done");
    assert!(model.reconnected(1, Some(vec![2])).is_err(), "and not undone");
}
