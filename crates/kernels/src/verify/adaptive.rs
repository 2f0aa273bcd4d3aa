//! [`Adaptive`]: units and unrolling, changed while the work goes on.
//!
//! The controller climbs: for a short window it tries a neighbour of the setting that it holds for
//! the best, and keeps the faster one. Trials that fail become rarer, and frequent again when the
//! rate changes. The cores that hosts leave limit the first guess of units; the best setting is
//! kept for each number of such cores, so that it is at hand when a burst of commands returns.
//!
//! Does no I/O and reads no clock: the caller reports bytes and the time that they took.

use super::UNROLL_MAX;

/// Numbers of pages that may advance together.
const UNROLLS: [u8; 6] = [1, 2, 3, 4, 6, UNROLL_MAX];
/// Shortest window, ns of work.
const WINDOW_NS: u64 = 500_000;
/// Smallest part that says something about a setting, bytes. Reading the clock takes as long as
/// half a page, so a part of a page or two would mostly measure the clock.
const LEAST_BYTES: u64 = 32 << 10;
/// Smallest number of parts in a window, for each unit.
const WINDOW_PARTS: u32 = 2;
/// Parts of a unit that are under way at once: one is read while the other is computed.
pub const PARTS_AHEAD: u16 = 2;
/// Windows between two trials: at first, and when many have failed.
const REST: (u32, u32) = (20, 640);
/// Gain from which on a trial counts as faster.
const GAIN: f64 = 1.02;
/// Change of the rate from which on everything is tried again.
const CHANGE: f64 = 0.15;
/// Rate of a trial, as a share of the best one, below which it ends at once.
const HOPELESS: f64 = 0.8;
/// Rounds in which a direction is passed over whose rate was next to nothing.
const SKIPS: f64 = 16.0;
/// Difference from the number of free cores that counts as a change, cores.
const HYSTERESIS: f64 = 0.6;
/// Share of the newest window in the rate of a setting.
const NEWEST: f64 = 0.25;

/// Units that work at once, and pages that advance together in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Number of units.
    pub units: u16,
    /// Number of pages that advance together, 1 to 8.
    pub unroll: u8,
}

/// Setting held for the best, for a number of cores that hosts leave.
#[derive(Clone, Copy, Debug)]
struct Best {
    setting: Setting,
    /// Its rate, bytes per ns; 0 before it was seen.
    rate: f64,
    /// Direction of the next trial, an index of [`neighbour`].
    direction: usize,
    /// Directions that failed since one succeeded.
    failed: usize,
    /// Windows between trials.
    rest: u32,
    /// Windows until the next trial.
    until_trial: u32,
    /// Rounds in which a direction is passed over, because it was much slower.
    skips: [u8; DIRECTIONS],
    /// Windows in a row whose rate was another.
    changed: u32,
}

/// Sums of a window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    bytes: u64,
    ns: u64,
    parts: u32,
}

/// Controller of a drive's verifications.
#[derive(Debug)]
pub struct Adaptive {
    /// Best setting for each number of cores that hosts leave, from 1.
    known: Vec<Best>,
    /// Number of cores that hosts leave.
    free: u16,
    trial: Option<Setting>,
    window: Window,
    /// Parts to pass over, which began with another setting.
    settling: u32,
}

/// Number of directions of [`neighbour`].
const DIRECTIONS: usize = UNITS_CHANGES + UNROLLS.len();
const UNITS_CHANGES: usize = 4;

/// Returns a neighbour of a setting: other units, or any other unrolling; `None` if there is none
/// in this direction.
fn neighbour(setting: Setting, direction: usize, units_max: u16) -> Option<Setting> {
    let Setting { units, unroll } = setting;
    let next = match direction {
        0 => Setting { units: units / 2, unroll },
        1 => Setting { units: units.saturating_mul(2).min(units_max), unroll },
        2 => Setting { units: units - 1, unroll },
        3 => Setting { units: units.saturating_add(1), unroll },
        other => Setting { units, unroll: *UNROLLS.get(other - UNITS_CHANGES)? },
    };
    (next != setting && (1..=units_max).contains(&next.units)).then_some(next)
}

impl Best {
    /// Guesses: a unit on every free core.
    fn guess(free: u16, unroll: u8) -> Self {
        Self {
            setting: Setting { units: free, unroll },
            rate: 0.0,
            direction: 0,
            failed: 0,
            rest: REST.0,
            until_trial: REST.0,
            skips: [0; DIRECTIONS],
            changed: 0,
        }
    }

    /// Learns the rate of a window with this setting.
    fn learn(&mut self, rate: f64) {
        if self.rate == 0.0 {
            self.rate = rate;
        }
        let is_other = (rate / self.rate - 1.0).abs() > CHANGE;
        self.changed = if is_other { self.changed + 1 } else { 0 };
        self.rate += NEWEST * (rate - self.rate);
        if self.changed == 3 {
            (self.rate, self.changed) = (rate, 0);
            (self.rest, self.failed, self.until_trial) = (REST.0, 0, 1);
            self.skips = [0; DIRECTIONS];
        }
    }

    /// Returns the next setting to try; `None` while it rests.
    fn next_trial(&mut self, units_max: u16) -> Option<Setting> {
        self.until_trial = self.until_trial.saturating_sub(1);
        if self.until_trial > 0 {
            return None;
        }
        for _ in 0..DIRECTIONS {
            let direction = self.direction;
            let tried = neighbour(self.setting, direction, units_max);
            if let (Some(setting), 0) = (tried, self.skips[direction]) {
                return Some(setting);
            }
            self.skips[direction] = self.skips[direction].saturating_sub(1);
            self.fail();
        }
        self.until_trial = self.rest;
        None
    }

    /// Turns to the next direction; rests longer once none has succeeded.
    fn fail(&mut self) {
        self.direction = (self.direction + 1) % DIRECTIONS;
        self.failed += 1;
        if self.failed >= DIRECTIONS {
            (self.failed, self.rest) = (0, (2 * self.rest).min(REST.1));
        }
    }

    /// Judges a trial, whose neighbour had this rate.
    #[allow(clippy::cast_possible_truncation)] // from 0 to SKIPS
    fn judge(&mut self, setting: Setting, rate: f64) {
        if rate > GAIN * self.rate {
            (self.setting, self.rate) = (setting, rate);
            (self.failed, self.rest, self.until_trial) = (0, REST.0, 1);
            return;
        }
        self.skips[self.direction] = (SKIPS * (1.0 - rate / self.rate)).max(0.0) as u8;
        self.fail();
        self.until_trial = self.rest;
    }
}

impl Adaptive {
    /// Starts with a unit on each of `cores` cores, and with this unrolling.
    #[must_use]
    pub fn new(cores: u16, unroll: u8) -> Self {
        let cores = cores.max(1);
        let unroll = unroll.clamp(1, UNROLL_MAX);
        Self {
            known: (1..=cores).map(|free| Best::guess(free, unroll)).collect(),
            free: cores,
            trial: None,
            window: Window::default(),
            settling: 0,
        }
    }

    /// Returns the setting of parts that begin now.
    #[must_use]
    pub fn setting(&self) -> Setting {
        self.trial.unwrap_or(self.best().setting)
    }

    fn best(&self) -> &Best {
        &self.known[usize::from(self.free) - 1]
    }

    fn best_mut(&mut self) -> &mut Best {
        &mut self.known[usize::from(self.free) - 1]
    }

    /// Returns true if the time of a part of `bytes` bytes says something about its setting. The
    /// others need not be timed, nor recorded.
    #[must_use]
    pub fn learns_from(bytes: u64) -> bool {
        bytes >= LEAST_BYTES
    }

    /// Records that a part of `bytes` bytes ended after another `ns` of work. Hosts took this share
    /// of all cores meanwhile, 0 to 1.
    pub fn record(&mut self, bytes: u64, ns: u64, hosts: f64) {
        if self.settling > 0 {
            self.settling -= 1;
        } else {
            self.window.bytes += bytes;
            self.window.ns += ns;
            self.window.parts += 1;
        }
        let Window { bytes, ns, parts } = self.window;
        let enough = WINDOW_PARTS * u32::from(self.setting().units);
        let rate = bytes as f64 / ns as f64;
        let is_hopeless = self.trial.is_some() && rate < HOPELESS * self.best().rate;
        let least_ns = if is_hopeless { WINDOW_NS / 4 } else { WINDOW_NS };
        if ns < least_ns || parts < enough {
            return;
        }
        self.window = Window::default();
        let before = self.setting();
        self.end_window(rate, hosts);
        if self.setting() != before {
            self.settling = u32::from(PARTS_AHEAD * before.units);
        }
    }

    fn end_window(&mut self, rate: f64, hosts: f64) {
        if self.hosts_changed(hosts) {
            return;
        }
        let units_max = u16::try_from(self.known.len()).unwrap_or(u16::MAX);
        match self.trial.take() {
            Some(setting) => self.best_mut().judge(setting, rate),
            None => self.best_mut().learn(rate),
        }
        self.trial = self.best_mut().next_trial(units_max);
    }

    /// Changes to the setting for the cores that hosts leave; returns true if it does.
    #[allow(clippy::cast_possible_truncation)] // from 1 to the number of cores
    fn hosts_changed(&mut self, hosts: f64) -> bool {
        let cores = self.known.len() as f64;
        let left = (cores * (1.0 - hosts)).max(1.0).min(cores);
        if (left - f64::from(self.free)).abs() <= HYSTERESIS {
            return false;
        }
        (self.free, self.trial) = (left.round() as u16, None);
        let best = self.best_mut();
        best.until_trial = best.rest;
        true
    }
}
