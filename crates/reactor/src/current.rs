//! The core that a thread works for.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::core::Core;
use crate::mailbox::Shared;
use crate::task::TaskKey;

thread_local! {
    static CURRENT: RefCell<Option<Rc<Core>>> = const { RefCell::new(None) };
}

/// Returns the core that this thread works for.
pub(crate) fn current() -> Rc<Core> {
    try_current().expect("called outside a core: use csd_reactor::run, block_on or sim::World")
}

pub(crate) fn try_current() -> Option<Rc<Core>> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Calls `act` with the current core, if there is one.
pub(crate) fn with_current(act: impl FnOnce(&Core)) {
    let _outside = CURRENT.try_with(|current| current.borrow().as_deref().map(act));
}

/// Queues a task if its core is the current one.
pub(crate) fn wake_here(shared: &Arc<Shared>, key: TaskKey) -> bool {
    CURRENT
        .try_with(|current| match &*current.borrow() {
            Some(core) if Arc::ptr_eq(&core.shared, shared) => {
                core.ready.push(key);
                true
            }
            _ => false,
        })
        .unwrap_or(false)
}

/// Makes a core the current one until dropped, also when a task panics.
pub(crate) struct Entered(Option<Rc<Core>>);

impl Entered {
    pub(crate) fn new(core: &Rc<Core>) -> Self {
        Self(CURRENT.with(|current| current.replace(Some(Rc::clone(core)))))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let outer = self.0.take();
        // The replaced core is dropped outside of the borrow.
        let _inner = CURRENT.try_with(|current| current.replace(outer));
    }
}
