//! The load: how many client threads put, on which cores their connections are, and when they rest.

use clap::ValueEnum;

/// Shape of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// Every thread puts all the time; connections are dealt to the cores in turns.
    Steady,
    /// All threads put for 1 ms and rest for 1 ms.
    Bursts,
    /// A quarter of the threads put all the time, the others for 10 ms of every 20 ms.
    Phases,
    /// Connections are on a third of the cores.
    Skewed,
}

/// A load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) shape: Shape,
    pub(crate) threads: usize,
}

const MS: u64 = 1_000_000;

impl Load {
    /// Returns the core of a client's connection.
    pub(crate) fn core_of(self, client: usize, cores: usize) -> usize {
        match self.shape {
            Shape::Skewed => client % cores.div_ceil(3),
            _ => client % cores,
        }
    }

    /// Returns when a client that is ready at `at_ns` sends its next put.
    pub(crate) fn next_ns(self, client: usize, at_ns: u64) -> u64 {
        let rests = |period_ns: u64| {
            let into = at_ns % period_ns;
            if into < period_ns / 2 { at_ns } else { at_ns - into + period_ns }
        };
        match self.shape {
            Shape::Steady | Shape::Skewed => at_ns,
            Shape::Bursts => rests(2 * MS),
            Shape::Phases if client.is_multiple_of(4) => at_ns,
            Shape::Phases => rests(20 * MS),
        }
    }
}
