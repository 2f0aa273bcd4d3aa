//! Keys, values and errors between Python and Rust.
//!
//! Invariant: a buffer of Python is read and written only while the interpreter is held. An object
//! of type `bytes` never changes, so it is read at any time.

use csd_client::{Key, Status};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

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

/// Returns a value of Python that has the buffer protocol.
pub(crate) fn value_of(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(bytes) = value.downcast::<PyBytes>() {
        return Ok(Value::Bytes(bytes.clone().into()));
    }
    bytes_of(value.py(), &PyBuffer::get(value)?).map(Value::Copy)
}

/// Returns a copy of a buffer's bytes.
pub(crate) fn bytes_of(py: Python<'_>, buffer: &PyBuffer<u8>) -> PyResult<Vec<u8>> {
    buffer.to_vec(py)
}

/// Returns a key.
pub(crate) fn key_of(py: Python<'_>, buffer: &PyBuffer<u8>) -> PyResult<Key> {
    let bytes = buffer.to_vec(py)?;
    Key::new(&bytes)
        .map_err(|_| PyValueError::new_err(format!("a key has 1 to 16 bytes, not {}", bytes.len())))
}

/// Writes bytes to the beginning of a buffer.
pub(crate) fn fill(py: Python<'_>, buffer: &PyBuffer<u8>, bytes: &[u8]) -> PyResult<()> {
    let why = "get_into needs a contiguous buffer that can be written, such as a bytearray";
    let cells = buffer.as_mut_slice(py).ok_or_else(|| PyBufferError::new_err(why))?;
    for (cell, byte) in cells.iter().zip(bytes) {
        cell.set(*byte);
    }
    Ok(())
}

/// Turns an error into an exception.
pub(crate) fn fail(error: csd_client::Error) -> PyErr {
    use csd_client::Error as Client;
    use csd_initiator::Error as Drive;
    let words = error.to_string();
    match &error {
        Client::KeyLength(_) | Client::Settings(_) | Client::NoNamespace { .. } => {
            PyValueError::new_err(words)
        }
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
