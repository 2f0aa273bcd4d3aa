//! [`Policy`]: the names of the rules by which a core is chosen.

use std::fmt;
use std::str::FromStr;

/// Rule by which a core is chosen for a background task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The core where it arose, in the queue of foreground work, as SPDK does. This is case
    /// 2 of Park et al., section V.C.
    Inline,
    /// The core where it arose, in slices that yield to foreground work.
    #[default]
    Local,
    /// A random idle core, else the least used one, by the last window: case 3 of Park et al. With
    /// a threshold, work stays where it arose if no core is below it.
    Bts,
    /// The core where waiting, the delay of foreground work and the cost of moving are the least.
    Adaptive,
}

impl Policy {
    /// All policies, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Inline, Self::Local, Self::Bts, Self::Adaptive];

    /// Returns the number in log pages and orders, from 1.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// Returns the policy of a number; `None` if there is none.
    #[must_use]
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.number() == number)
    }

    /// Returns the name, as `--policy` takes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Local => "local",
            Self::Bts => "bts",
            Self::Adaptive => "adaptive",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// A name that is no policy's: the caller is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no policy {name:?}: inline, local, bts or adaptive")]
pub struct ParsePolicyError {
    name: String,
}

impl FromStr for Policy {
    type Err = ParsePolicyError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|policy| policy.name() == name);
        found.ok_or_else(|| ParsePolicyError { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_at_one_and_are_read_back() {
        assert_eq!(Policy::ALL.map(Policy::number), [1, 2, 3, 4]);
        assert_eq!(
            Policy::ALL.map(|policy| Policy::of_number(policy.number())),
            Policy::ALL.map(Some)
        );
        assert_eq!((Policy::of_number(0), Policy::of_number(5)), (None, None));
    }

    #[test]
    fn names_are_read_back_and_others_are_refused_in_words() {
        for policy in Policy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        let error = "fifo".parse::<Policy>().unwrap_err().to_string();
        assert_eq!(error, "there is no policy \"fifo\": inline, local, bts or adaptive");
    }
}
