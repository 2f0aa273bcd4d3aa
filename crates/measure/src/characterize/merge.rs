//! Merging drives into one device: drives of an array that do not differ count as runs of one
//! model.
//!
//! Invariant: either all drives are merged, with every sample of every drive, or none.

use super::plan::{Cell, Found};
use super::quantiles::Samples;

impl Found {
    /// Merges all drives into one, if none differs from the first by more than their runs do;
    /// returns true if there is one drive now.
    pub fn merge(&mut self) -> bool {
        let drives = self.written.len();
        let alike = |other: usize| {
            let (first, other) = (self.row(0), self.row(other));
            first.len() == other.len() && first.iter().zip(&other).all(|(a, b)| a.is_alike(b))
        };
        if !(1..drives).all(alike) {
            return false;
        }
        let (mut own, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.cells).into_iter().partition(|cell| cell.subject == 0);
        for cell in others {
            let same =
                own.iter_mut().find(|own| own.is_of(&cell)).expect("all have the same cells");
            same.merge(&cell);
        }
        self.cells = own;
        let mut written = std::mem::take(&mut self.written).into_iter();
        let (mut times, bytes) = written.next().unwrap_or_default();
        written.for_each(|(others, _)| times.extend(&others));
        self.written = vec![(times, bytes)];
        true
    }

    /// Returns the highest bandwidth at which the host read a drive by itself, bytes per second.
    #[must_use]
    pub fn read_alone(&self, subject: usize) -> u64 {
        let row = self.row(subject);
        let host = row.iter().filter(|cell| cell.side == crate::profile::Where::Host);
        let best = host.filter_map(|cell| super::build::bandwidth(cell.bytes, &cell.load)).max();
        best.unwrap_or(0)
    }

    /// Returns the cells of one drive, without those under a burden of the host.
    fn row(&self, subject: usize) -> Vec<&Cell> {
        let own = |cell: &&Cell| cell.subject == subject && cell.overload.is_none();
        self.cells.iter().filter(own).collect()
    }
}

impl Cell {
    /// Returns true if both cells are of the same kernel, system and working set, on any drives.
    fn is_of(&self, other: &Self) -> bool {
        let key = |cell: &Self| (cell.kernel, cell.side, cell.units, cell.bytes, cell.overload);
        key(self) == key(other)
    }

    fn is_alike(&self, other: &Self) -> bool {
        let times = |cell: &Self| -> [Samples; 4] {
            [&cell.load, &cell.comp, &cell.store, &cell.pipelined].map(Samples::clone)
        };
        let (ours, others) = (times(self), times(other));
        self.is_of(other) && ours.iter().zip(&others).all(|(a, b)| !a.differs(b))
    }

    fn merge(&mut self, other: &Self) {
        let pairs = [
            (&mut self.load, &other.load),
            (&mut self.comp, &other.comp),
            (&mut self.store, &other.store),
            (&mut self.pipelined, &other.pipelined),
            (&mut self.cpu, &other.cpu),
            (&mut self.joules, &other.joules),
        ];
        pairs.into_iter().for_each(|(own, other)| own.extend(other));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Overload, OverloadKind, Where};
    use csd_kernels::registry;

    fn cell(subject: usize, side: Where, load: [f64; 3]) -> Cell {
        let kernel = registry::by_name("count").unwrap();
        let mut cell = Cell::new(kernel, (subject, side), 1, 1 << 20);
        load.iter().for_each(|value| cell.load.push(*value));
        [0.1; 3].iter().for_each(|value| cell.comp.push(*value));
        cell
    }

    fn found(second: [f64; 3]) -> Found {
        let mut burdened = cell(0, Where::Host, [9.0; 3]);
        let kind = OverloadKind::Cpu;
        burdened.overload = Some(Overload { kind, memory_bytes: None, rivals: Some(1) });
        let cells = vec![
            cell(0, Where::Host, [1.0, 1.1, 1.2]),
            cell(0, Where::Drive, [0.5; 3]),
            cell(1, Where::Host, second),
            cell(1, Where::Drive, [0.5; 3]),
            burdened,
        ];
        Found { cells, written: vec![Default::default(); 2], warnings: Vec::new() }
    }

    #[test]
    fn drives_that_do_not_differ_are_one_with_all_their_runs() {
        let mut found = found([1.2, 1.1, 1.0]);
        assert_eq!(found.read_alone(1), 953_250, "a MiB in 1.1 s");
        assert!(found.merge());
        let runs: Vec<_> =
            found.cells.iter().map(|cell| cell.load.quartiles().unwrap().n).collect();
        assert_eq!((runs, found.written.len()), (vec![6, 6, 3], 1));
        assert!(found.cells.iter().all(|cell| cell.subject == 0));
        assert!(found.merge(), "one drive is one already");
    }

    #[test]
    fn drives_that_differ_stay_apart() {
        let mut slower = found([2.0, 2.1, 2.2]);
        assert!(!slower.merge());
        assert_eq!((slower.cells.len(), slower.written.len()), (5, 2));
        // One of the drives does not compute.
        let mut lacking = found([1.0, 1.1, 1.2]);
        lacking.cells.remove(3);
        assert!(!lacking.merge());
    }
}
