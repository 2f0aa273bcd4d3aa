//! [`Plan`]: how a kernel runs over objects.

use crate::ElementType;

/// An object, as far as a kernel needs to know it.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Name.
    pub name: &'a str,
    /// Type of its elements.
    pub element: ElementType,
    /// Number of its elements.
    pub elements: u64,
    /// Its dimensions, outermost first.
    pub shape: &'a [u64],
    /// Size of its chunks, bytes.
    pub chunk_bytes: u32,
    /// Rule by which it was split over the drives.
    pub layout: Layout,
}

/// Rule by which an object was split over the drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Chunk by chunk.
    Chunks,
    /// By ranges of its values.
    Ranges,
    /// By whole rows.
    Rows,
    /// By whole rows of a graph's incoming edges.
    Graph {
        /// Number of nodes.
        nodes: u64,
    },
}

/// A kernel fitted to objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Parameters of its program.
    pub parameters: Vec<u8>,
    /// Smallest piece of the objects that one execution works on.
    pub unit: Unit,
    /// Relation that two inputs must have.
    pub pairing: Pairing,
    /// Object that the run may write.
    pub writes: Writes,
    /// Form of an execution's answer.
    pub answer: AnswerForm,
    /// Size of an item, bytes: [`super::Position`] counts items.
    pub item_bytes: u32,
    /// Number of bytes that an execution takes at a time, made whole chunks; `None`: as many as
    /// one may.
    pub execution_bytes: Option<u64>,
    /// Number of executions of a drive in progress at once; `None`: the usual number.
    pub in_flight: Option<u16>,
}

impl Plan {
    /// Returns a plan for executions over chunks of elements whose results are the answer.
    #[must_use]
    pub fn over_chunks(parameters: Vec<u8>, element: ElementType) -> Self {
        Self {
            parameters,
            unit: Unit::Chunk,
            pairing: Pairing::None,
            writes: Writes::Nothing,
            answer: AnswerForm::Result,
            item_bytes: u32::try_from(element.bytes()).expect("at most 16"),
            execution_bytes: None,
            in_flight: None,
        }
    }
}

/// Smallest piece of the objects that one execution works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A chunk.
    Chunk,
    /// A part of a layout by ranges or rows, whole.
    Part {
        /// Remedy for parts with more chunks than an execution takes.
        remedy: &'static str,
    },
}

/// Relation that two inputs must have, besides equal drives and chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// There is one input.
    None,
    /// Element by element: the same layout.
    Elements,
    /// Range by range: split at the same values.
    Ranges,
}

/// Object that a run may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// None.
    Nothing,
    /// Elements as those of the first input, in its layout.
    SameShape,
    /// Elements of all inputs, range by range; results are their numbers.
    Ranges,
    /// One element for each item.
    PerItem {
        /// Type of the element.
        element: ElementType,
    },
}

/// Form of an execution's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// The result alone.
    Result,
    /// The result and this many bytes.
    Bytes(u32),
    /// The result and one sum of this many bytes for each row; a vector is the last input.
    RowSums {
        /// Size of a sum, bytes.
        bytes: u32,
        /// Size of the vector, bytes.
        vector_bytes: u64,
    },
}
