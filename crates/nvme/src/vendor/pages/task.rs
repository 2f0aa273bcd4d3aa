//! [`Task`]: the task of the program `pages`, which compares pages with a page list.

use super::{LISTS_MAX, Malformed, PROGRAM_ID};
use crate::vendor::execute::{Execution, Output, SourceData};
use crate::wire::layout;

layout! {
    /// Task of the program: the inline source of its execution.
    pub struct TaskRecord[32] {
        /// Identifier of the object, in the key of the list.
        object / set_object: [12] @ 0,
        /// Number of the list.
        number / set_number: u32 @ 12,
        /// Namespace of the list.
        nsid / set_nsid: u32 @ 16,
        /// Number of the piece in the list.
        piece / set_piece: u32 @ 20,
        /// First page to compare.
        from / set_from: u32 @ 24,
        /// Reserved, 0.
        reserved / set_reserved: u32 @ 28,
    }
}

/// Task of the program: the pages of one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Namespace of the list.
    pub nsid: u32,
    /// Identifier of the object.
    pub object: [u8; 12],
    /// Number of the list, below [`LISTS_MAX`].
    pub number: u32,
    /// Number of the piece in the list.
    pub piece: u32,
    /// First page to compare.
    pub from: u32,
}

impl Task {
    /// Returns an execution of this task. Dword 0 of its result is the first page that differs, or
    /// [`NONE`](super::NONE), dword 1 the number of those that differ.
    #[must_use]
    pub fn execution(&self) -> Execution {
        let mut record = TaskRecord::zeroed();
        record.set_nsid(self.nsid).set_object(&self.object).set_number(self.number);
        record.set_piece(self.piece).set_from(self.from);
        let bytes = u32::try_from(TaskRecord::SIZE).expect("a task is short");
        Execution {
            program: PROGRAM_ID,
            output: Output::Completion,
            sources: vec![SourceData::Inline { bytes }.into()],
            inline: record.as_bytes().to_vec(),
            digests: None,
            parameters: Vec::new(),
            serial: false,
            cores: 0,
        }
    }

    /// Parses the task of an execution.
    ///
    /// # Errors
    /// [`Malformed`] also if it is not the execution's only source, and inline.
    pub fn of(execution: &Execution) -> Result<Self, Malformed> {
        let wrong = Malformed("the task is not the only source, inline and without parameters");
        let [source] = &execution.sources[..] else { return Err(wrong) };
        let is_alone = execution.parameters.is_empty() && execution.output == Output::Completion;
        if !is_alone || !matches!(source.data, SourceData::Inline { .. }) {
            return Err(wrong);
        }
        let record: &[u8; TaskRecord::SIZE] =
            execution.inline[..].try_into().map_err(|_| Malformed("a task has not 32 bytes"))?;
        let record = TaskRecord::from_bytes(*record);
        let (nsid, object, number) = (record.nsid(), record.object(), record.number());
        if record.reserved() != 0 || number >= LISTS_MAX {
            return Err(Malformed("reserved bytes of the task are not zero"));
        }
        Ok(Self { nsid, object, number, piece: record.piece(), from: record.from() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::pages::list_key;

    #[test]
    fn tasks_come_back_and_wrong_ones_are_named() {
        let task = Task { nsid: 2, object: [9; 12], number: 0x0102, piece: 3, from: 70_000 };
        let execution = task.execution();
        assert_eq!(Task::of(&execution), Ok(task));
        assert_eq!(execution.inline[11..16], [9, 2, 1, 0, 0]);
        assert_eq!(list_key(&[9; 12], 0x0102).as_bytes()[11..], [9, 0, 1, 2]);
        assert_eq!(execution.inline[16..28], [2, 0, 0, 0, 3, 0, 0, 0, 0x70, 0x11, 1, 0]);
        let parsed = Execution::parse(&execution.encode()).unwrap();
        assert_eq!(Task::of(&parsed), Ok(task));
        let mut reserved = execution.clone();
        reserved.inline[28] = 1;
        let refused = Err(Malformed("reserved bytes of the task are not zero"));
        assert_eq!(Task::of(&reserved), refused);
        let short = Execution { inline: vec![0; 31], ..execution.clone() };
        assert_eq!(Task::of(&short), Err(Malformed("a task has not 32 bytes")));
        let more = Execution { parameters: vec![1], ..execution };
        assert!(Task::of(&more).is_err());
    }
}
