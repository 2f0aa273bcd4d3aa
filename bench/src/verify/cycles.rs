//! Cycles of the verifier as a circuit (`rtl/`), by the model of its beats.
//!
//! The same model as `rtl/model.py`, which is compared with the simulated circuit cycle for cycle;
//! a test compares this one with the record that `rtl/cycles.py` wrote.

/// Bits of a page.
const PAGE_BITS: u64 = 8 * 4096;
/// Width of the bus, bits.
const BUS_BITS: u64 = 512;
/// Beats of a page; the memory delivers one a cycle.
const BEATS: u64 = PAGE_BITS / BUS_BITS;
/// Cycles to the first beat, and to start a unit: assumptions, as `rtl/cycles.py` says.
const LATENCY: u64 = 100;
const START_UP: u64 = 3000;
/// Clock rate of the cycles, Hz: also an assumption.
pub const CLOCK_HZ: f64 = 300e6;

/// A circuit: pages that a unit works on together, units, and bits of a page that a step takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circuit {
    /// Pages of a unit.
    pub pages: u64,
    /// Units.
    pub units: u64,
    /// Bits of a page that a step takes.
    pub lane_bits: u64,
}

/// One unit: the cycles in which it began to read a group, ended it, and gave its last checksum.
#[derive(Clone, Copy, Default)]
struct Unit {
    begin: Option<u64>,
    end: u64,
    drained: u64,
}

impl Unit {
    /// Returns the cycle in which the last of a group's results leaves; one leaves in a cycle.
    fn drain(&mut self, count: u64, known: u64, left: u64) -> u64 {
        let first = (self.end + 1).max(known).max(left);
        self.drained = first + count - 1;
        self.drained + 1
    }
}

/// A group whose results wait for the next page to be whole: its unit and its pages.
type Held = Option<(usize, u64)>;

impl Circuit {
    /// Returns all circuits that work on 300 pages at once, with this unrolling.
    pub fn of_300(lane_bits: u64) -> impl Iterator<Item = Self> {
        let divides = |units: &u64| 300u64.is_multiple_of(*units);
        (1..=300).filter(divides).map(move |units| Self { pages: 300 / units, units, lane_bits })
    }

    /// Returns the circuit of one page in one unit.
    pub fn sequential(lane_bits: u64) -> Self {
        Self { pages: 1, units: 1, lane_bits }
    }

    /// Returns the cycles of a file of `pages` pages, with the start of the units.
    #[allow(clippy::cast_possible_truncation)] // cycles of a file stay far below 2^52
    pub fn cycles(&self, pages: u64) -> u64 {
        let round = self.pages * self.units;
        // Rounds until the last few are alike; whole ones repeat from there.
        let rounds = (240 / round).max(12);
        let run = if pages <= (rounds + 1) * round {
            self.run(pages)
        } else {
            let few = pages % round + (rounds - 4) * round;
            let before = self.run(few);
            let steady = self.run(few + 4 * round) - before;
            // Half to even, as Python rounds.
            before + (steady as f64 / 4.0 * ((pages - few) / round) as f64).round_ties_even() as u64
        };
        START_UP * self.units + run
    }

    /// Returns the cycle in which the last result of `pages` pages leaves.
    fn run(&self, pages: u64) -> u64 {
        let share = BUS_BITS.div_ceil(self.pages).next_power_of_two();
        let word = self.lane_bits.max(share);
        let (words, word_steps) = (BUS_BITS / word, word / self.lane_bits);
        let steps = PAGE_BITS / self.lane_bits;
        let mut units = vec![Unit::default(); usize::try_from(self.units).unwrap_or(1)];
        // Cycles count from 1 here, so that 0 stands before the first one.
        let (mut due, mut written, mut before, mut taken) = (LATENCY + 1, 0, 0, 0);
        let (mut left, mut last) = (0, 0);
        let mut held: Held = None;
        for page in 0..pages {
            let (group, index) = (page / self.pages, page % self.pages);
            let at = usize::try_from(group % self.units).expect("a unit");
            for beat in 0..BEATS {
                let take = due.max(taken + 1).max(before);
                due = take + 1;
                let free = match units[at].begin {
                    Some(begin) if index == 0 => begin + ((beat + 1) * words - 1) * word_steps + 1,
                    _ => 0,
                };
                (before, taken) = (written, take);
                written = (take + 2).max(written + 1).max(free);
            }
            if index == 0
                && let Some((unit, count)) = held.take()
            {
                left = units[unit].drain(count, written + 1, left);
                last = left;
            }
            let is_last = page == pages - 1;
            if index == self.pages - 1 || is_last {
                let unit = &mut units[at];
                let begin = (written + 1).max(unit.end);
                unit.begin = Some(begin);
                unit.end = (begin + steps).max(unit.drained);
                if is_last {
                    last = unit.drain(index + 1, written + 2, left);
                } else {
                    held = Some((at, index + 1));
                }
            }
        }
        last.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn cycles_are_those_of_the_record() {
        let record = include_str!("../../records/rtl.jsonl");
        let rows = record.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut compared = 0;
        for row in rows.filter(|row| row["record"] == "cycles") {
            let number = |key: &str| row[key].as_u64().unwrap();
            let lane_bits = number("lane_bits");
            let circuit = Circuit { pages: number("pages"), units: number("units"), lane_bits };
            let pages = number("bytes") / 4096;
            assert_eq!(circuit.cycles(pages), number("cycles"), "{circuit:?}");
            assert_eq!(Circuit::sequential(lane_bits).cycles(pages), number("sequential"));
            compared += 1;
        }
        assert_eq!(compared, 28);
        for (pages, units, file, cycles) in
            [(1, 1, 15, 64_608), (15, 1, 15, 8174), (1, 15, 1, 49_264)]
        {
            // The record's sizes, with 3,000 cycles to start a unit.
            assert_eq!(Circuit { pages, units, lane_bits: 8 }.cycles(file), cycles);
        }
    }

    #[test]
    fn circuits_of_300_pages_are_all_products() {
        let all: Vec<Circuit> = Circuit::of_300(8).collect();
        assert_eq!(all.len(), 18);
        assert!(all.iter().all(|circuit| circuit.pages * circuit.units == 300));
    }
}
