//! When the lane is lifted ([`Floor`]): a drive's lane yields to the drive's own commands, and not
//! without end to whatever else runs on the machine.
//!
//! A lowered thread beside threads that always want its CPU gets about a thousandth of it. A lane
//! that got less than a tenth of the time it had work, while its core had little to do for hosts,
//! works at normal priority for a while; each time that was in vain, the next while is twice as
//! long. Never reads a clock or moves a thread: that is the worker's. Invariant: the lane is never
//! lifted at a look after a span in which the core was busy for its hosts.

/// Time between two looks, ns.
pub(super) const LOOK_NS: u64 = 5_000_000;
/// Time with work after which the lane is judged, ns.
const WINDOW_NS: u64 = 50_000_000;
/// The lane starves below one part in so many of the time it has work.
const STARVED_BELOW: u64 = 10;
/// The core is busy for its hosts from one part in so many of the time on.
const FOREGROUND_FROM: u64 = 5;
/// How long the lane is lifted first, and at most, ns.
const HOLD_MIN_NS: u64 = 500_000_000;
const HOLD_MAX_NS: u64 = 16_000_000_000;

/// Clocks of a core and its lane; all but `now_ns` only run for what they say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// Time.
    pub(super) now_ns: u64,
    /// Time for which the lane has had work.
    pub(super) asked_ns: u64,
    /// CPU time of the lane.
    pub(super) lane_ns: u64,
    /// Time for which the core has worked for its hosts.
    pub(super) foreground_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Lowered,
    /// Until this time.
    Lifted(u64),
}

/// The policy of one lane.
#[derive(Debug, Default)]
pub(super) struct Floor {
    state: State,
    /// The last look.
    last: Reading,
    /// Where the span began over which the lane is judged.
    window: Reading,
    /// How long the lane was lifted last; 0 if it has not starved since it could.
    hold_ns: u64,
}

impl Floor {
    /// Whether the lane is to work at normal priority from now on.
    pub(super) fn look(&mut self, reading: Reading) -> bool {
        let passed_ns = reading.now_ns - self.last.now_ns;
        let foreground_ns = reading.foreground_ns - self.last.foreground_ns;
        self.last = reading;
        if foreground_ns * FOREGROUND_FROM >= passed_ns {
            self.state = State::Lowered;
            self.window = reading;
            return false;
        }
        match self.state {
            State::Lifted(until_ns) if reading.now_ns < until_ns => return true,
            State::Lifted(_) => {
                self.state = State::Lowered;
                self.window = reading;
                return false;
            }
            State::Lowered => {}
        }
        let asked_ns = reading.asked_ns - self.window.asked_ns;
        if asked_ns < WINDOW_NS {
            return false;
        }
        let lane_ns = reading.lane_ns - self.window.lane_ns;
        self.window = reading;
        if lane_ns * STARVED_BELOW >= asked_ns {
            self.hold_ns = 0;
            return false;
        }
        self.hold_ns = (self.hold_ns * 2).clamp(HOLD_MIN_NS, HOLD_MAX_NS);
        self.state = State::Lifted(reading.now_ns + self.hold_ns);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at a lane that always has work for `ms`, of which it gets `lane` and the hosts get
    /// `foreground` parts in a hundred; how long it was lifted, ms.
    fn pass(floor: &mut Floor, ms: u64, lane: u64, foreground: u64) -> u64 {
        let mut reading = floor.last;
        let looks = ms * 1_000_000 / LOOK_NS;
        let lifted = (0..looks).filter(|_| {
            reading.now_ns += LOOK_NS;
            reading.asked_ns += LOOK_NS;
            reading.lane_ns += LOOK_NS * lane / 100;
            reading.foreground_ns += LOOK_NS * foreground / 100;
            floor.look(reading)
        });
        lifted.count() as u64 * LOOK_NS / 1_000_000
    }

    #[test]
    fn a_lane_that_gets_along_stays_low() {
        let mut floor = Floor::default();
        assert_eq!(pass(&mut floor, 10_000, 10, 0), 0);
        assert_eq!(pass(&mut floor, 10_000, 90, 19), 0);
    }

    #[test]
    fn one_that_starves_is_lifted_within_a_window_and_lowered_after_a_while() {
        let mut floor = Floor::default();
        assert_eq!(pass(&mut floor, 45, 0, 0), 0);
        assert_eq!(pass(&mut floor, 505, 0, 0), 500);
        // It is judged anew, over a whole window.
        assert_eq!(pass(&mut floor, 45, 0, 0), 0);
        assert_eq!(pass(&mut floor, 5, 0, 0), 5);
    }

    #[test]
    fn each_time_in_vain_doubles_the_next_while_up_to_a_limit() {
        let mut floor = Floor::default();
        // 50 ms to judge, then 0.5, 1, 2, 4, 8 and twice 16 s.
        assert_eq!(pass(&mut floor, 47_500 + 7 * 50, 5, 0), 47_500);
        // One good window, and it begins anew: 0.5 s, then up to 1 s.
        assert_eq!(pass(&mut floor, 100, 50, 0), 0);
        assert_eq!(pass(&mut floor, 1000, 5, 0), 500 + 405);
    }

    #[test]
    fn the_drives_own_commands_lower_it_at_once_and_keep_it_low() {
        let mut floor = Floor::default();
        assert_eq!(pass(&mut floor, 50, 0, 0), 5);
        assert_eq!(pass(&mut floor, 10_000, 0, 20), 0);
        // And lifted again once they are over, after a whole window of that.
        assert_eq!(pass(&mut floor, 45, 0, 0), 0);
        assert!(pass(&mut floor, 5, 0, 0) > 0);
    }

    #[test]
    fn time_without_work_is_nobodys_fault() {
        let mut floor = Floor::default();
        let mut reading = Reading::default();
        for _ in 0..1000 {
            reading.now_ns += LOOK_NS;
            reading.asked_ns += LOOK_NS / 1000;
            assert!(!floor.look(reading));
        }
    }
}
