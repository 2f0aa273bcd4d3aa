//! Asks all drives that vote.

use std::rc::Rc;

use csd_reactor::{Class, JoinHandle, spawn};

use crate::array::{Array, Drive};

/// Runs `ask` for all drives that vote, concurrently.
pub(super) fn on_all<T: 'static, F: Future<Output = T> + 'static>(
    array: &Array,
    ask: impl Fn(Rc<Drive>) -> F,
) -> Vec<JoinHandle<(Rc<Drive>, T)>> {
    array
        .voters()
        .into_iter()
        .map(|drive| {
            let answer = ask(Rc::clone(&drive));
            spawn(Class::Foreground, async move { (drive, answer.await) })
        })
        .collect()
}
