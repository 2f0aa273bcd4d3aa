//! Answers of a task: the digests of its pieces, and which targets are stored.

use crate::status::Status;
use crate::wire::take;

/// Outcome of a target whose peer could not be reached.
const LOST: u32 = 0xFFFF;

/// Outcome of one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Its drive has acknowledged it.
    Yes,
    /// Its drive has refused it.
    Refused(Status),
    /// Its drive could not be reached, or did not answer: it may be there.
    Lost,
}

/// Answers of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// CRC-32C of every source.
    pub sources: Vec<u32>,
    /// CRC-32C and outcome of every target.
    pub targets: Vec<(u32, Stored)>,
}

impl Answers {
    /// Returns the length of the answers of a task, bytes.
    #[must_use]
    pub fn bytes(sources: usize, targets: usize) -> usize {
        4 * sources + 8 * targets
    }

    /// Returns the bytes: 4 for each source, 8 for each target.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut data: Vec<u8> = self.sources.iter().flat_map(|crc| crc.to_le_bytes()).collect();
        for (crc, stored) in &self.targets {
            let outcome = match stored {
                Stored::Yes => 0,
                Stored::Refused(status) => u32::from(status.0),
                Stored::Lost => LOST,
            };
            data.extend_from_slice(&crc.to_le_bytes());
            data.extend_from_slice(&outcome.to_le_bytes());
        }
        data
    }

    /// Parses the answers of a task with these numbers of pieces; `None` if they are malformed.
    #[must_use]
    pub fn parse(data: &[u8], sources: usize, targets: usize) -> Option<Self> {
        if data.len() != Self::bytes(sources, targets) {
            return None;
        }
        let word = |bytes: &[u8]| u32::from_le_bytes(take(bytes, 0));
        let (crcs, outcomes) = data.split_at(4 * sources);
        let target = |bytes: &[u8]| {
            let stored = match word(&bytes[4..]) {
                0 => Stored::Yes,
                LOST => Stored::Lost,
                status => Stored::Refused(Status(u16::try_from(status).ok()?)),
            };
            Some((word(bytes), stored))
        };
        let targets = outcomes.chunks(8).map(target).collect::<Option<_>>()?;
        Some(Self { sources: crcs.chunks(4).map(word).collect(), targets })
    }

    /// Returns the result of the program: the CRC-32C of the first target in dword 0, the number of
    /// targets that are stored in dword 1.
    #[must_use]
    pub fn result(&self) -> u64 {
        let stored = self.targets.iter().filter(|(_, stored)| *stored == Stored::Yes).count();
        let first = self.targets.first().map_or(0, |(crc, _)| *crc);
        (stored as u64) << 32 | u64::from(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_round_trip_and_only_whole_ones_are_taken() {
        let targets = vec![
            (0x0403_0201, Stored::Yes),
            (9, Stored::Refused(Status::CAPACITY_EXCEEDED)),
            (1, Stored::Lost),
        ];
        let answers = Answers { sources: vec![u32::MAX, 0], targets };
        let data = answers.encode();
        assert_eq!(data.len(), Answers::bytes(2, 3));
        assert_eq!(data[8..16], [1, 2, 3, 4, 0, 0, 0, 0]);
        assert_eq!(Answers::parse(&data, 2, 3).as_ref(), Some(&answers));
        assert_eq!(answers.result(), 1 << 32 | 0x0403_0201);
        assert_eq!(Answers::parse(&data, 3, 3), None);
        assert_eq!(Answers::parse(&data[1..], 2, 3), None);
        let mut wrong = data;
        wrong[14] = 1;
        assert_eq!(Answers::parse(&wrong, 2, 3), None, "no status has 17 bits");
    }
}
