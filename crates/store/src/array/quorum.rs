//! [`Quorum`]: numbers of drives that make a change certain and a read complete.
//!
//! Does no I/O. Invariants: two sets of drives that write share a drive; a set that writes and a
//! set that reads share a drive.

/// Quorums of the catalogue of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quorum {
    drives: usize,
    write: usize,
}

impl Quorum {
    /// Returns the quorums of `drives` drives, of which readers must be able to miss `losses`. The
    /// write quorum is a majority, or more if `losses` is more than a minority.
    #[must_use]
    pub fn new(drives: usize, losses: usize) -> Self {
        Self { drives, write: (drives / 2 + 1).max(losses + 1).min(drives.max(1)) }
    }

    /// Returns the smallest number of drives that must hold an entry before its change counts.
    #[must_use]
    pub fn write(self) -> usize {
        self.write
    }

    /// Returns the smallest number of drives that must answer a reader: one of them holds every
    /// entry that counts.
    #[must_use]
    pub fn read(self) -> usize {
        self.drives + 1 - self.write
    }

    /// Returns the smallest number of drives that two writers cannot both have.
    #[must_use]
    pub fn majority(self) -> usize {
        self.drives / 2 + 1
    }

    /// Returns the number of other drives that must answer before a drive that has forgotten
    /// something may vote again: they know every entry and every claim that it took part in.
    #[must_use]
    pub fn witnesses(self) -> usize {
        // A set of claims is a majority, the forgetful drive one of them.
        (self.drives + 1 - self.majority()).max(self.read())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_meets_every_writer_and_a_writer_every_other() {
        for drives in 1..=64 {
            for losses in 0..drives {
                let quorum = Quorum::new(drives, losses);
                assert!(quorum.write() + quorum.read() > drives, "{quorum:?}");
                assert!(2 * quorum.write() > drives && quorum.write() <= drives, "{quorum:?}");
                assert!(quorum.read() <= drives - losses, "{quorum:?}");
                // One of a majority has forgotten, and the witnesses meet the others.
                let others = quorum.majority() - 1 + quorum.witnesses();
                assert!(others > drives - 1, "{quorum:?}");
            }
        }
    }

    #[test]
    fn half_of_an_even_number_of_drives_suffices_to_read() {
        let quorums = |drives| {
            let quorum = Quorum::new(drives, 0);
            (quorum.write(), quorum.read())
        };
        assert_eq!([1, 2, 3, 4, 6].map(quorums), [(1, 1), (2, 1), (2, 2), (3, 2), (4, 3)]);
        assert_eq!((Quorum::new(4, 3).write(), Quorum::new(4, 3).read()), (4, 1));
    }
}
