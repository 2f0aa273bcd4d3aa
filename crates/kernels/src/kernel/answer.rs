//! Answers of executions: their place in the whole, their combination, and their description.

/// Answer of an execution, or of several combined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Result: dwords 0 and 1 of the completion.
    pub result: u64,
    /// Bytes that belong to the answer; their meaning is the kernel's.
    pub bytes: Vec<u8>,
}

/// Position of the items of an execution among those of the whole: `every` items, then a gap of
/// `gap` items of others, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Index of the first item.
    pub first: u64,
    /// Number of items between two gaps; 0 without gaps.
    pub every: u32,
    /// Number of items in a gap.
    pub gap: u64,
    /// Number of items of the whole.
    pub items: u64,
}

/// A named value.
pub type Field = (&'static str, Value);

/// A value to show.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count.
    Count(u64),
    /// Words, or a number that may need more digits than a count has.
    Text(String),
    /// No value: there is nothing to take it from.
    None,
}

/// Answer as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Name of the main value, as in JSON output.
    pub name: &'static str,
    /// The main value.
    pub value: u64,
    /// Name and text that tables show instead of the main value.
    pub shown: Option<(&'static str, String)>,
    /// Further values.
    pub fields: Vec<Field>,
}

impl Description {
    /// Describes an answer that is one count.
    #[must_use]
    pub fn count(name: &'static str, value: u64) -> Self {
        Self { name, value, shown: None, fields: Vec::new() }
    }
}
