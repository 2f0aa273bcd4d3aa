//! Opening, describing and closing a namespace.
#![allow(unsafe_code, clippy::missing_safety_doc, reason = "the header documents the functions")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::time::Duration;

use csd_client::{Client, Settings, parse_nqn};

use crate::fault::{Fault, guarded};
use crate::handle::{self, Handle};

/// `struct csd_kv_open_opts`.
#[repr(C)]
pub struct OpenOptions {
    opts_size: usize,
    secrets_file: *const c_char,
    host_nqn: *const c_char,
    tries: u32,
    connect_timeout_ms: u32,
    command_timeout_ms: u32,
    queue_depth: u32,
}

/// `struct csd_kv_ns_data`.
#[repr(C)]
pub struct NamespaceData {
    nsze: u64,
    nuse: u64,
    nsid: u32,
    kvkml: u32,
    kvvml: u32,
    mnks: u32,
}

/// Sets all options to their defaults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_open_opts_init(opts: *mut OpenOptions, opts_size: usize) {
    guarded(|| {
        if opts.is_null() || opts_size != size_of::<OpenOptions>() {
            return Err(Fault::invalid("options of another version of csd_kv.h"));
        }
        let defaults = Settings::default();
        let ms = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let options = OpenOptions {
            opts_size,
            secrets_file: std::ptr::null(),
            host_nqn: std::ptr::null(),
            tries: defaults.tries,
            connect_timeout_ms: ms(defaults.options.connect_timeout),
            command_timeout_ms: ms(defaults.options.command_timeout),
            queue_depth: u32::try_from(defaults.capacity).unwrap_or(u32::MAX),
        };
        // SAFETY: the caller's structure, of the size that it says.
        unsafe { opts.write(options) };
        Ok(0)
    });
}

/// Connects to a namespace.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_open(
    url: *const c_char,
    opts: *const OpenOptions,
    ns: *mut *mut c_void,
) -> c_int {
    guarded(|| {
        if url.is_null() || ns.is_null() {
            return Err(Fault::invalid("the URL or the place for the handle is null"));
        }
        // SAFETY: the caller's string, zero-terminated.
        let url = unsafe { text(url, "the URL") }?;
        // SAFETY: null, or the caller's structure.
        let settings = settings(unsafe { opts.as_ref() })?;
        let client = Client::connect(url, &settings)?;
        let handle = handle::insert(Handle::Namespace(client));
        // SAFETY: the caller's variable.
        unsafe { ns.write(handle) };
        Ok(0)
    })
}

/// Closes a namespace.
#[unsafe(no_mangle)]
pub extern "C" fn csd_kv_close(ns: *mut c_void) -> c_int {
    guarded(|| {
        handle::namespace(ns)?;
        match handle::remove(ns)? {
            Handle::Namespace(client) => client.close()?,
            Handle::Queue(_) => return Err(Fault::invalid("the handle is a queue")),
        }
        Ok(0)
    })
}

/// Describes a namespace.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_ns_get_data(ns: *mut c_void, data: *mut NamespaceData) -> c_int {
    guarded(|| {
        if data.is_null() {
            return Err(Fault::invalid("the place for the data is null"));
        }
        let info = handle::namespace(ns)?.info()?;
        let described = NamespaceData {
            nsze: info.bytes,
            nuse: info.used_bytes,
            nsid: info.nsid,
            kvkml: info.key_bytes_max.into(),
            kvvml: info.value_bytes_max,
            mnks: info.keys_max,
        };
        // SAFETY: the caller's structure.
        unsafe { data.write(described) };
        Ok(0)
    })
}

fn settings(opts: Option<&OpenOptions>) -> Result<Settings, Fault> {
    let Some(opts) = opts else { return Ok(Settings::from_environment()?) };
    if opts.opts_size != size_of::<OpenOptions>() {
        return Err(Fault::invalid("the options were not set by csd_kv_open_opts_init"));
    }
    let optional = |pointer: *const c_char, what| {
        // SAFETY: not null, so the caller's string, zero-terminated.
        (!pointer.is_null()).then(|| unsafe { text(pointer, what) }).transpose()
    };
    let mut settings = match optional(opts.secrets_file, "the secrets file")? {
        Some(path) => Settings::from_environment_with(Some(Path::new(path)))?,
        None => Settings::from_environment()?,
    };
    if let Some(nqn) = optional(opts.host_nqn, "the host's NQN")? {
        settings = settings.with_host_nqn(parse_nqn(nqn).map_err(|why| Fault::invalid(&why))?);
    }
    let defaults = Settings::default();
    let timeout = Duration::from_millis(opts.connect_timeout_ms.into());
    if timeout != defaults.options.connect_timeout {
        settings.options.connect_timeout = timeout;
    }
    settings.options.command_timeout = Duration::from_millis(opts.command_timeout_ms.into());
    settings.tries = opts.tries;
    settings.capacity = opts.queue_depth.max(1) as usize;
    Ok(settings)
}

/// Returns a caller's string.
///
/// # Safety
/// `pointer` is not null and points to a zero-terminated string, for as long as it is used.
unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Fault> {
    // SAFETY: as the caller of this function promises.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Fault::invalid(&format!("{what} is not UTF-8")))
}
