//! Objects of an array: names and byte ranges in, bytes out.
//!
//! Invariant: as in the client, no call holds the interpreter's lock while it waits.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use csd_store::ElementType;
use csd_store::array::DEFAULT_PATH;
use csd_store::catalogue::{Entry, Placement};
use csd_store::error::NameError;
use csd_store::fault::Fault;
use csd_store::object::{Error as ObjectError, PAGE_BYTES, PutOptions};
use csd_store::objects::{Error as ObjectsError, Objects};
use csd_store::source::Source;
use pyo3::exceptions::{PyFileExistsError, PyFileNotFoundError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::convert::Contiguous;
use crate::settings::settings;
use crate::waiting::{at_any_time, detached};
use crate::{Closed, Error};

/// The objects of an array.
#[pyclass(frozen, weakref, module = "csdstore._csdstore")]
pub(crate) struct NativeArray {
    objects: Objects,
}

/// An object: its entry in the catalogue.
#[pyclass(frozen, module = "csdstore._csdstore")]
pub(crate) struct NativeObject {
    entry: Entry,
}

#[pymethods]
impl NativeArray {
    #[new]
    #[pyo3(signature = (array=None, secrets=None, host_nqn=None))]
    fn new(
        py: Python<'_>,
        array: Option<PathBuf>,
        secrets: Option<PathBuf>,
        host_nqn: Option<&str>,
    ) -> PyResult<Self> {
        let options = settings(secrets.as_deref(), host_nqn)?.options;
        let array = array.or_else(|| std::env::var_os("CSD_ARRAY").map(PathBuf::from));
        let array = array.unwrap_or_else(|| DEFAULT_PATH.into());
        let objects = detached(py, || Objects::connect(&array, options))?.map_err(fail)?;
        Ok(Self { objects })
    }

    fn lookup(&self, py: Python<'_>, name: &str) -> PyResult<NativeObject> {
        let entry = detached(py, || self.objects.lookup(name))?.map_err(fail)?;
        Ok(NativeObject { entry })
    }

    /// Returns the objects in a folder, the paths of the folders in it, and the number of names
    /// that cannot be known.
    fn children(
        &self,
        py: Python<'_>,
        path: &str,
    ) -> PyResult<(Vec<NativeObject>, Vec<String>, usize)> {
        let found = detached(py, || self.objects.children(path))?.map_err(fail)?;
        let objects = found.objects.into_values().map(|entry| NativeObject { entry });
        Ok((objects.collect(), found.folders.into_iter().collect(), found.damaged))
    }

    /// Returns whether an object lies below a folder.
    fn is_folder(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        detached(py, || self.objects.is_folder(path))?.map_err(fail)
    }

    /// Returns the objects whose names begin with a prefix, and the number of names that are
    /// damaged.
    fn list(&self, py: Python<'_>, prefix: &str) -> PyResult<(Vec<NativeObject>, usize)> {
        let (sealed, damaged) = detached(py, || self.objects.list(prefix))?.map_err(fail)?;
        let sealed = sealed.into_iter().map(|entry| NativeObject { entry });
        Ok((sealed.collect(), damaged))
    }

    fn read<'py>(
        &self,
        py: Python<'py>,
        object: &NativeObject,
        start: u64,
        end: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let end = end.min(object.entry.bytes);
        let length = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
        // Nothing else has these bytes before this returns, so that they are written unlocked.
        PyBytes::new_with(py, length, |into| {
            detached(py, || self.objects.read(&object.entry, start, into))?.map_err(fail)
        })
    }

    fn put(&self, py: Python<'_>, name: &str, value: Contiguous) -> PyResult<()> {
        let bytes = Cursor::new(value.to_vec(py)?);
        self.put_from(py, name, Box::new(bytes))
    }

    fn put_file(&self, py: Python<'_>, name: &str, path: PathBuf) -> PyResult<()> {
        let file = detached(py, || open(&path))??;
        self.put_from(py, name, Box::new(file))
    }

    fn remove(&self, py: Python<'_>, name: &str) -> PyResult<Vec<String>> {
        detached(py, || self.objects.remove(name))?.map_err(fail)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        // Also when the interpreter ends, unlike other calls.
        at_any_time(py, || self.objects.close())?.map_err(fail)
    }
}

impl NativeArray {
    fn put_from(&self, py: Python<'_>, name: &str, from: Box<dyn Read + Send>) -> PyResult<()> {
        let source = Source::raw(name, from, ElementType::Bytes);
        let page_bytes = Some(PAGE_BYTES);
        let options = PutOptions { page_bytes, ..PutOptions::new(name.to_owned()) };
        detached(py, || self.objects.put(source, options))?.map(drop).map_err(fail)
    }
}

#[pymethods]
impl NativeObject {
    #[getter]
    fn name(&self) -> &str {
        &self.entry.name
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.entry.bytes
    }

    /// Returns what `csd stat --json` says about the object itself, and the time of its put as
    /// milliseconds since 1970, 0 if it is not known.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let entry = &self.entry;
        let described = PyDict::new(py);
        described.set_item("element", entry.element.name())?;
        described.set_item("shape", entry.shape.clone())?;
        described.set_item("chunk_bytes", entry.chunk_bytes)?;
        let on = if matches!(entry.placement, Placement::Kv) { "kv" } else { "block" };
        described.set_item("on", on)?;
        described.set_item("stored_unix_ms", entry.stored_unix_ms)?;
        described.set_item("epoch", entry.epoch)?;
        described.set_item("id", hex(&entry.id.0))?;
        described.set_item("blake3", entry.has_digest().then(|| hex(&entry.digest)))?;
        Ok(described)
    }
}

fn open(path: &Path) -> PyResult<File> {
    Ok(File::open(path)?)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Turns an error into an exception.
fn fail(error: ObjectsError) -> PyErr {
    let words = error.to_string();
    match &error {
        ObjectsError::Object(ObjectError::Name(NameError::Missing { .. })) => {
            PyFileNotFoundError::new_err(words)
        }
        ObjectsError::Object(ObjectError::Name(NameError::Exists { .. })) => {
            PyFileExistsError::new_err(words)
        }
        ObjectsError::Object(error) if error.fault() == Fault::Usage => {
            PyValueError::new_err(words)
        }
        ObjectsError::Unanswered(_) => Closed::new_err(words),
        _ => Error::new_err(words),
    }
}
