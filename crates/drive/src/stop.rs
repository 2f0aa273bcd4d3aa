//! Ending a drive's other cores once its first one ends.
//!
//! Never: why. Invariant: a core that was told ends, whether it waited already or not.

use std::cell::Cell;
use std::rc::Rc;

use csd_reactor::{Class, CoreId, Notify, core_count, keep, kept, post};

/// Tells a core other than the first to end.
#[derive(Default)]
struct Ended {
    flag: Cell<bool>,
    told: Notify,
}

impl Ended {
    fn here() -> Rc<Self> {
        kept::<Self>().unwrap_or_else(|| {
            let ended = Rc::new(Self::default());
            keep(Rc::clone(&ended));
            ended
        })
    }
}

/// Tells every core but the first to end.
pub(crate) fn end_others() {
    for core in 1..core_count() {
        // A core that is gone has ended.
        let _ = post(CoreId(core), Class::System, || {
            let ended = Ended::here();
            ended.flag.set(true);
            ended.told.notify_all();
        });
    }
}

/// Waits until this core is told to end.
pub(crate) async fn other_core() {
    let ended = Ended::here();
    while !ended.flag.get() {
        ended.told.notified().await;
    }
}
