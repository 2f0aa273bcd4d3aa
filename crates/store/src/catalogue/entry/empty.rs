//! [`Entry::empty`].

use csd_kernels::ElementType;

use super::{Entry, ObjectId, Placement, State};
use crate::array::DriveIndex;
use crate::layout::CHUNK_BYTES_MIN;

impl Entry {
    /// Returns an entry without bytes, writer or epoch, as values on the first drive: what is known
    /// of an object of which nothing is known. A caller sets what it knows.
    #[must_use]
    pub fn empty(name: &str, id: ObjectId, state: State) -> Self {
        Self {
            name: name.to_owned(),
            id,
            writer: [0; 16],
            epoch: 0,
            state,
            element: ElementType::Bytes,
            shape: Vec::new(),
            chunk_bytes: CHUNK_BYTES_MIN,
            bytes: 0,
            offset: 0,
            whole: false,
            parts: None,
            members: vec![DriveIndex::default()],
            placement: Placement::Kv,
            digest: [0; 32],
            sums: Vec::new(),
            survives: 0,
            protection: None,
            copy: None,
            stored_unix_ms: 0,
        }
    }
}
