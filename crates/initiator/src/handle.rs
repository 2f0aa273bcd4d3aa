//! [`Handle`]: a drive and a namespace id, common to the typed calls of all command sets.
//!
//! Invariant: the drive has a namespace of that id and kind.

use crate::{Controller, Error, NamespaceKind};

/// A namespace of a drive; clones are cheap.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(crate) controller: Controller,
    pub(crate) nsid: u32,
}

impl Handle {
    /// Returns the namespace `nsid` of a drive, with the data that `pick` takes from its kind.
    ///
    /// # Errors
    /// [`Error::Misuse`] if there is no such namespace, or `pick` rejects its kind;
    /// the error names `what` as the kind that was expected.
    pub(crate) fn open<T>(
        controller: &Controller,
        nsid: u32,
        what: &str,
        pick: impl FnOnce(NamespaceKind) -> Option<T>,
    ) -> Result<(Self, T), Error> {
        let kind = controller.namespace(nsid).map(|namespace| namespace.kind);
        match kind.and_then(pick) {
            Some(picked) => Ok((Self { controller: controller.clone(), nsid }, picked)),
            None => Err(controller.misuse(format!("namespace {nsid} is no {what} namespace"))),
        }
    }

    /// Returns the drive.
    #[must_use]
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Returns the namespace id.
    #[must_use]
    pub fn nsid(&self) -> u32 {
        self.nsid
    }
}

/// Lets a typed namespace be used as its handle.
macro_rules! is_handle {
    ($namespace:ty) => {
        impl std::ops::Deref for $namespace {
            type Target = crate::Handle;

            fn deref(&self) -> &crate::Handle {
                &self.handle
            }
        }
    };
}
pub(crate) use is_handle;
