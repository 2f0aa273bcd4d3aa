//! The columns of the results: a drive without background work, one for each policy, and variants
//! that tell apart what their parts contribute.

use csd_sched::{Policy, Threshold};

/// Cost of the update at the end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    /// No core looks at the others.
    None,
    /// The one that the paper prints.
    Published,
    /// The one of this drive.
    Own,
}

/// A policy, with what the simulation charges and separates under it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// `None`: without background work.
    pub(crate) policy: Option<Policy>,
    /// True if background work yields to hosts' requests, in steps, and is no load of its core in
    /// the eyes of the policy. False if it is one more task in their queue, as in SPDK.
    pub(crate) has_classes: bool,
    pub(crate) update: Update,
    pub(crate) has_threshold: bool,
}

impl Case {
    const fn new(policy: Policy, has_classes: bool, update: Update) -> Self {
        let name = policy.name();
        Self { name, policy: Some(policy), has_classes, update, has_threshold: false }
    }

    const fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Returns the threshold of the policy.
    pub(crate) fn threshold(&self) -> Option<Threshold> {
        self.has_threshold.then(Threshold::default)
    }
}

/// Case 2 of the paper.
pub(crate) const INLINE: Case = Case::new(Policy::Inline, false, Update::None);
/// Case 3 of the paper.
pub(crate) const BTS: Case = Case::new(Policy::Bts, false, Update::Published);

/// All cases: case 1, the policies that `adaptive` is compared with, `adaptive`, and variants.
pub(crate) const CASES: [Case; 8] = [
    Case { policy: None, ..INLINE.named("none") },
    INLINE,
    Case::new(Policy::Local, true, Update::None),
    BTS,
    Case::new(Policy::Adaptive, true, Update::Own),
    Case::new(Policy::Adaptive, true, Update::Published).named("adaptive-90us"),
    Case::new(Policy::Bts, true, Update::Published).named("bts-classes"),
    Case { has_threshold: true, ..BTS.named("bts-threshold") },
];

/// Places of the other policies, of `adaptive`, and of other rules than that of `adaptive`.
pub(crate) const POLICIES: [usize; 3] = [1, 2, 3];
pub(crate) const ADAPTIVE: usize = 4;
pub(crate) const OTHER_RULES: [usize; 5] = [1, 2, 3, 6, 7];
