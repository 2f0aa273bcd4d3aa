//! [`Resources`]: memory and tables that a guest may still allocate.

use wasmtime::{Error, ResourceLimiter};

use crate::limits::TABLE_ELEMENTS_MAX;

/// Limits of a guest's memory and tables.
pub(crate) struct Resources {
    /// Limit of its memory, bytes.
    memory_bytes: usize,
    /// Number of elements that its tables may still grow by, all together.
    elements: u64,
}

impl Resources {
    pub(crate) fn new(memory_bytes: usize) -> Self {
        Self { memory_bytes, elements: TABLE_ELEMENTS_MAX }
    }
}

impl ResourceLimiter for Resources {
    fn memory_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> Result<bool, Error> {
        Ok(desired <= self.memory_bytes)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> Result<bool, Error> {
        let more = desired.saturating_sub(current) as u64;
        let left = self.elements.checked_sub(more);
        self.elements = left.unwrap_or(self.elements);
        Ok(left.is_some())
    }

    fn instances(&self) -> usize {
        1
    }

    fn memories(&self) -> usize {
        1
    }
}
