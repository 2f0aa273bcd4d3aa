//! [`Redial`]: another connection to a drive that did not answer, or whose connection is lost.
//!
//! The drive may have another life and another address by now. Its vote is decided by the caller;
//! it has none where pieces alone are sent and read.

use std::rc::Rc;

use csd_initiator::Options;
use csd_reactor::{Class, compute_fn};

use super::{Drive, DriveIndex, Plan};

/// Addresses of an array's drives, and how they are connected to.
pub(crate) struct Redial {
    plan: Plan,
    pub(crate) options: Options,
}

impl Redial {
    pub(super) fn new(plan: &Plan, options: &Options) -> Rc<Self> {
        Rc::new(Self { plan: plan.clone(), options: options.clone() })
    }

    /// Returns the addresses as the array file has them now, if there is one.
    async fn plan(&self) -> Plan {
        let Some(path) = self.plan.path.clone() else { return self.plan.clone() };
        match compute_fn(Class::Foreground, 0, move || Plan::load(&path)).await {
            Ok(Ok(plan)) if plan.uuid == self.plan.uuid => plan,
            _ => self.plan.clone(),
        }
    }

    /// Connects to a drive as at the beginning.
    ///
    /// # Errors
    /// The reason why it is down.
    pub(crate) async fn connect_soon(&self, index: DriveIndex) -> Result<Rc<Drive>, String> {
        self.plan().await.connect(index, &self.options).await.map(Rc::new)
    }

    /// Connects to a drive, with a longer wait.
    ///
    /// # Errors
    /// The reason why it is down.
    pub(crate) async fn connect(&self, index: DriveIndex) -> Result<Rc<Drive>, String> {
        // A machine that is up and busy may take longer to accept a connection.
        let reach_timeout = self.options.connect_timeout;
        let options = Options { reach_timeout, ..self.options.clone() };
        self.plan().await.connect(index, &options).await.map(Rc::new)
    }
}
