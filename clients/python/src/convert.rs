//! Keys, values and errors between Python and Rust.
//!
//! Invariant: a buffer of Python is read and written only while the interpreter is held. An object
//! of type `bytes` never changes, so it is read at any time.

use csd_client::{Key, Status};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView};

use crate::{Closed, ConnectionLost, Error, KeyExists};

/// A value to store.
pub(crate) enum Value {
    /// An object of type `bytes`, not copied.
    Bytes(PyBackedBytes),
    /// A copy of another buffer.
    Copy(Vec<u8>),
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Copy(copy) => copy,
        }
    }
}

/// The bytes of a buffer of Python, whatever its items and dimensions are.
pub(crate) struct Contiguous(PyBuffer<u8>);

impl FromPyObject<'_> for Contiguous {
    fn extract_bound(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        // Most keys are `bytes`, and need no view.
        if object.is_instance_of::<PyBytes>() {
            return PyBuffer::get(object).map(Self);
        }
        let view = PyMemoryView::from(object)?;
        if !view.getattr("c_contiguous")?.extract::<bool>()? {
            let why = "the buffer is not C-contiguous: pass a copy of it, such as bytes(buffer)";
            return Err(PyBufferError::new_err(why));
        }
        // Python does not cast views of several dimensions that have no bytes.
        if view.getattr("nbytes")?.extract::<usize>()? == 0 {
            return PyBuffer::get(&PyByteArray::new(object.py(), b"")).map(Self);
        }
        PyBuffer::get(&view.call_method1("cast", ("B",))?).map(Self)
    }
}

impl Contiguous {
    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.len_bytes()
    }

    /// Returns a copy of the bytes.
    pub(crate) fn to_vec(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        self.0.to_vec(py)
    }

    /// Returns an error if the bytes cannot be written.
    pub(crate) fn check_writable(&self) -> PyResult<()> {
        if self.0.readonly() { Err(read_only()) } else { Ok(()) }
    }

    /// Writes bytes to the beginning of the buffer.
    pub(crate) fn fill(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        let cells = self.0.as_mut_slice(py).ok_or_else(read_only)?;
        for (cell, byte) in cells.iter().zip(bytes) {
            cell.set(*byte);
        }
        Ok(())
    }
}

fn read_only() -> PyErr {
    PyBufferError::new_err("get_into needs a buffer that can be written, such as a bytearray")
}

/// Returns a value of Python that has the buffer protocol.
pub(crate) fn value_of(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(bytes) = value.downcast::<PyBytes>() {
        return Ok(Value::Bytes(bytes.clone().into()));
    }
    value.extract::<Contiguous>()?.to_vec(value.py()).map(Value::Copy)
}

/// Returns a key.
pub(crate) fn key_of(py: Python<'_>, buffer: &Contiguous) -> PyResult<Key> {
    let bytes = buffer.to_vec(py)?;
    Key::new(&bytes)
        .map_err(|_| PyValueError::new_err(format!("a key has 1 to 16 bytes, not {}", bytes.len())))
}

/// Turns an error into an exception.
pub(crate) fn fail(error: csd_client::Error) -> PyErr {
    use csd_client::Error as Client;
    use csd_initiator::Error as Drive;
    let words = error.to_string();
    match &error {
        Client::KeyLength(_)
        | Client::PieceKey
        | Client::Settings(_)
        | Client::NoNamespace { .. } => PyValueError::new_err(words),
        Client::Drive(Drive::BadAddress { .. } | Drive::Misuse { .. } | Drive::TooLarge { .. }) => {
            PyValueError::new_err(words)
        }
        Client::Drive(Drive::Status { status: Status::KEY_EXISTS, .. }) => {
            KeyExists::new_err(words)
        }
        Client::Drive(
            Drive::Unreachable { .. }
            | Drive::Lost { .. }
            | Drive::Timeout { .. }
            | Drive::Protocol { .. }
            | Drive::Closed { .. },
        ) => ConnectionLost::new_err(words),
        Client::Unanswered(_) => Closed::new_err(words),
        _ => Error::new_err(words),
    }
}
