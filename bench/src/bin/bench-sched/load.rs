//! The load: how many client threads send requests, which share of them are gets, on which cores
//! their connections are, and when they rest.

use clap::ValueEnum;

/// Shape of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// Every thread works all the time; connections are dealt to the cores in turns.
    Steady,
    /// All threads work for 1 ms and rest for 1 ms.
    Bursts,
    /// A quarter of the threads work all the time, the others for 10 ms of every 20 ms.
    Phases,
    /// Connections are on a third of the cores.
    Skewed,
    /// For 10 ms each the threads of all cores work, of half of them, of one core, of half of them.
    Cores,
}

/// A load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) shape: Shape,
    pub(crate) threads: usize,
    /// Share of gets in the requests, percent.
    pub(crate) gets_percent: u8,
}

const MS: u64 = 1_000_000;
/// Length of a phase.
const PHASE_NS: u64 = 10 * MS;

impl Load {
    /// Returns the core of a client's connection.
    pub(crate) fn core_of(self, client: usize, cores: usize) -> usize {
        match self.shape {
            Shape::Skewed => client % cores.div_ceil(3),
            _ => client % cores,
        }
    }

    /// Returns when a client that is ready at `at_ns` sends its next request.
    pub(crate) fn next_ns(self, client: usize, cores: usize, at_ns: u64) -> u64 {
        let rests = |period_ns: u64| {
            let into = at_ns % period_ns;
            if into < period_ns / 2 { at_ns } else { at_ns - into + period_ns }
        };
        match self.shape {
            Shape::Steady | Shape::Skewed => at_ns,
            Shape::Bursts => rests(2 * MS),
            Shape::Phases if client.is_multiple_of(4) => at_ns,
            Shape::Phases => rests(2 * PHASE_NS),
            Shape::Cores => when_active(self.core_of(client, cores), cores, at_ns),
        }
    }

    /// Returns the number of the phase of a time; `None` if the load does not change in phases.
    pub(crate) fn phase(self, at_ns: u64) -> Option<u64> {
        matches!(self.shape, Shape::Phases | Shape::Cores).then_some(at_ns / PHASE_NS)
    }
}

/// Returns the first time from `at_ns` on at which a core is one of the active ones.
fn when_active(core: usize, cores: usize, at_ns: u64) -> u64 {
    let active = |phase: u64| match phase % 4 {
        0 => cores,
        2 => 1,
        _ => cores.div_ceil(2),
    };
    let mut phase = at_ns / PHASE_NS;
    while core >= active(phase) {
        phase += 1;
    }
    at_ns.max(phase * PHASE_NS)
}
