//! Native part of the Python package `csdstore`: bytes in, bytes out, no policy.
//!
//! Buffers of Python are copied while the interpreter is held, except `bytes`, which never change;
//! waiting happens without it. The package around it (`python/csdstore`) has the interfaces for
//! people. Invariants: the client's own thread never takes the interpreter's lock; no call holds
//! that lock while it waits.

mod array;
mod convert;
mod queue;
mod settings;
mod waiting;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use csd_client::{Client, STORE_IF_ABSENT, STORE_IF_EXISTS, is_piece};

use convert::{Contiguous, key_of, value_of};
use waiting::wait;

pyo3::create_exception!(_csdstore, Error, pyo3::exceptions::PyException, "A call failed.");
pyo3::create_exception!(_csdstore, KeyExists, Error, "The key exists.");
pyo3::create_exception!(_csdstore, ConnectionLost, Error, "The drive cannot be reached.");
pyo3::create_exception!(_csdstore, Closed, Error, "The client is closed, or its process forked.");

/// Keys of one page of an iteration.
type Keys = csd_client::Keys;

/// A connection to a key-value namespace.
#[pyclass(frozen, weakref, module = "csdstore._csdstore")]
struct Native {
    client: Client,
    queue: queue::Queue,
}

/// Returns the options of a Store.
fn options_of(if_absent: bool, if_exists: bool) -> u8 {
    let absent = if if_absent { STORE_IF_ABSENT } else { 0 };
    absent | if if_exists { STORE_IF_EXISTS } else { 0 }
}

#[pymethods]
impl Native {
    #[new]
    #[pyo3(signature = (url, secrets=None, host_nqn=None, tries=None, capacity=None))]
    fn new(
        py: Python<'_>,
        url: &str,
        secrets: Option<std::path::PathBuf>,
        host_nqn: Option<&str>,
        tries: Option<u32>,
        capacity: Option<usize>,
    ) -> PyResult<Self> {
        let mut settings = settings::settings(secrets.as_deref(), host_nqn)?;
        settings.tries = tries.unwrap_or(settings.tries);
        settings.capacity = capacity.unwrap_or(settings.capacity).max(1);
        let client = wait(py, || Client::connect(url, &settings))?;
        Ok(Self { client, queue: queue::Queue::new()? })
    }

    fn put(
        &self,
        py: Python<'_>,
        key: Contiguous,
        value: &Bound<'_, PyAny>,
        if_absent: bool,
        if_exists: bool,
    ) -> PyResult<()> {
        let (key, value) = (key_of(py, &key)?, value_of(value)?);
        wait(py, || self.client.put_value(&key, value, options_of(if_absent, if_exists)))
    }

    fn get<'py>(&self, py: Python<'py>, key: Contiguous) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let key = key_of(py, &key)?;
        let value = wait(py, || self.client.get(key.as_bytes()))?;
        Ok(value.map(|value| PyBytes::new(py, &value)))
    }

    fn get_into(
        &self,
        py: Python<'_>,
        key: Contiguous,
        buffer: Contiguous,
    ) -> PyResult<Option<u64>> {
        let key = key_of(py, &key)?;
        buffer.check_writable()?;
        let size = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        let front = wait(py, || self.client.front(key.as_bytes(), size))?;
        front.map(|(bytes, whole)| buffer.fill(py, &bytes).map(|()| whole)).transpose()
    }

    fn exists(&self, py: Python<'_>, key: Contiguous) -> PyResult<bool> {
        let key = key_of(py, &key)?;
        wait(py, || self.client.exists(key.as_bytes()))
    }

    fn delete(&self, py: Python<'_>, key: Contiguous) -> PyResult<bool> {
        let key = key_of(py, &key)?;
        wait(py, || self.client.delete(key.as_bytes()))
    }

    fn put_object(
        &self,
        py: Python<'_>,
        key: Contiguous,
        value: &Bound<'_, PyAny>,
        if_absent: bool,
        if_exists: bool,
    ) -> PyResult<u32> {
        let (key, value) = (key_of(py, &key)?, value_of(value)?);
        let options = options_of(if_absent, if_exists);
        let put = wait(py, || self.client.put_object_value(&key, value, options))?;
        Ok(put.pieces)
    }

    fn get_object<'py>(
        &self,
        py: Python<'py>,
        key: Contiguous,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let key = key_of(py, &key)?;
        let object = wait(py, || self.client.get_object(key.as_bytes()))?;
        Ok(object.map(|object| PyBytes::new(py, &object)))
    }

    fn delete_object(&self, py: Python<'_>, key: Contiguous) -> PyResult<bool> {
        let key = key_of(py, &key)?;
        wait(py, || self.client.delete_object(key.as_bytes()))
    }

    /// Returns an iterator of keys that begin with `prefix`.
    fn keys(&self, py: Python<'_>, prefix: Contiguous, pieces: bool) -> PyResult<KeyIterator> {
        let keys = self.client.keys(&prefix.to_vec(py)?);
        Ok(KeyIterator { keys: std::sync::Mutex::new(keys), pieces })
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, || self.client.flush())
    }

    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let info = wait(py, || self.client.info())?;
        let described = PyDict::new(py);
        described.set_item("url", info.address.to_string())?;
        described.set_item("nsid", info.nsid)?;
        described.set_item("bytes", info.bytes)?;
        described.set_item("used_bytes", info.used_bytes)?;
        described.set_item("value_bytes_max", info.value_bytes_max)?;
        described.set_item("key_bytes_max", info.key_bytes_max)?;
        described.set_item("keys_max", info.keys_max)?;
        Ok(described)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        // Also when the interpreter ends, unlike other calls.
        waiting::at_any_time(py, || self.client.close())?.map_err(convert::fail)
    }

    /// Returns the descriptor that is readable while operations have ended.
    fn fileno(&self) -> i32 {
        self.queue.descriptor()
    }

    fn submit_put(
        &self,
        py: Python<'_>,
        token: u64,
        key: Contiguous,
        value: Contiguous,
        if_absent: bool,
        if_exists: bool,
    ) -> PyResult<()> {
        let (key, value) = (key_of(py, &key)?, value.to_vec(py)?);
        let options = options_of(if_absent, if_exists);
        let put = csd_client::Operation::Put { key, value, options };
        self.queue.submit(py, &self.client, token, put)
    }

    fn submit_get(&self, py: Python<'_>, token: u64, key: Contiguous) -> PyResult<()> {
        let get = csd_client::Operation::Get(key_of(py, &key)?);
        self.queue.submit(py, &self.client, token, get)
    }

    fn submit_exists(&self, py: Python<'_>, token: u64, key: Contiguous) -> PyResult<()> {
        let exists = csd_client::Operation::Exists(key_of(py, &key)?);
        self.queue.submit(py, &self.client, token, exists)
    }

    fn submit_delete(&self, py: Python<'_>, token: u64, key: Contiguous) -> PyResult<()> {
        let delete = csd_client::Operation::Delete(key_of(py, &key)?);
        self.queue.submit(py, &self.client, token, delete)
    }

    /// Returns the operations that have ended: token, result or `None`, error or `None`.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Vec<queue::Ended<'py>>> {
        self.queue.drain(py)
    }
}

/// Iterator of keys.
#[pyclass(frozen, module = "csdstore._csdstore")]
struct KeyIterator {
    keys: std::sync::Mutex<Keys>,
    pieces: bool,
}

#[pymethods]
impl KeyIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let next = wait(py, || {
            let mut keys = self.keys.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            keys.find(|key| self.pieces || !key.as_ref().is_ok_and(is_piece)).transpose()
        })?;
        match next {
            Some(key) => Ok(Some(PyBytes::new(py, key.as_bytes()))),
            None => Ok(None),
        }
    }
}

#[pymodule]
fn _csdstore(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Native>()?;
    module.add_class::<array::NativeArray>()?;
    module.add_class::<array::NativeObject>()?;
    module.add_function(wrap_pyfunction!(waiting::shut, module)?)?;
    module.add_function(wrap_pyfunction!(waiting::forked, module)?)?;
    module.add_function(wrap_pyfunction!(waiting::settle, module)?)?;
    module.add("Error", module.py().get_type::<Error>())?;
    module.add("KeyExists", module.py().get_type::<KeyExists>())?;
    module.add("ConnectionLost", module.py().get_type::<ConnectionLost>())?;
    module.add("Closed", module.py().get_type::<Closed>())
}
