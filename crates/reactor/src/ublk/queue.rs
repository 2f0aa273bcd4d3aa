//! [`Queue`]: the requests of a device, in memory that the kernel shares, and their data.
//!
//! Invariant: a descriptor is read only between the arrival of its request and the request's end.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

use super::wire::{Descriptor, data_position};

/// The character device of a block device.
pub(super) struct Queue {
    pub(super) device: File,
    descriptors: NonNull<Descriptor>,
    bytes: usize,
    depth: u16,
}

impl Queue {
    /// Maps the descriptors of a queue of `depth` requests.
    pub(super) fn new(device: File, depth: u16) -> io::Result<Self> {
        // SAFETY: no pointers; the size of a page is always known.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) });
        let page = page.map_err(io::Error::other)?;
        let bytes = (usize::from(depth) * size_of::<Descriptor>()).next_multiple_of(page);
        let fd = device.as_raw_fd();
        // SAFETY: a new mapping, wherever the kernel likes, of a descriptor that is open.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, fd, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let descriptors = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { device, descriptors, bytes, depth })
    }

    /// Returns the descriptor of a request that has arrived.
    pub(super) fn descriptor(&self, tag: u16) -> Descriptor {
        assert!(tag < self.depth, "the kernel has as many tags");
        // SAFETY: within the mapping, aligned as an array is; any bytes are a descriptor. The
        // kernel changes it only after the request's end, and volatile in any case.
        unsafe { self.descriptors.as_ptr().add(usize::from(tag)).read_volatile() }
    }

    /// Copies the data of a write.
    pub(super) fn read_data(&self, tag: u16, into: &mut [u8]) -> io::Result<()> {
        self.device.read_exact_at(into, data_position(tag))
    }

    /// Copies the data of a read.
    pub(super) fn write_data(&self, tag: u16, from: &[u8]) -> io::Result<()> {
        self.device.write_all_at(from, data_position(tag))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made; no reference into it is ever made.
        let _unmapped = unsafe { libc::munmap(self.descriptors.as_ptr().cast(), self.bytes) };
    }
}
