//! [`Redial`]: another connection to a drive that did not answer, or whose connection is lost.
//!
//! For reads of pieces alone, which are compared with their digests: the drive may have another
//! life by now, and does not vote on this connection.

use std::rc::Rc;

use csd_initiator::Options;

use super::{Drive, DriveIndex, Plan};

/// Addresses of an array's drives, and how they are connected to.
pub(crate) struct Redial {
    plan: Plan,
    options: Options,
}

impl Redial {
    pub(super) fn new(plan: &Plan, options: &Options) -> Rc<Self> {
        // A machine that is up and busy may take longer to accept a connection.
        let options = Options { reach_timeout: options.connect_timeout, ..options.clone() };
        Rc::new(Self { plan: plan.clone(), options })
    }

    /// Connects to a drive.
    ///
    /// # Errors
    /// The reason why it is down.
    pub(crate) async fn connect(&self, index: DriveIndex) -> Result<Rc<Drive>, String> {
        self.plan.connect(index, &self.options).await.map(Rc::new)
    }
}
