//! Damage of media at rest.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::support::harness::Array;

/// Returns the path of a medium of the array.
pub(crate) fn medium(array: &Array, name: &str) -> PathBuf {
    array.path(&format!("csd-array/{name}.media"))
}

/// Flips a bit of a medium, `further` bytes behind the place of these bytes; returns false if the
/// medium does not have them.
#[must_use]
pub(crate) fn flip_bit(array: &Array, name: &str, needle: &[u8], further: usize) -> bool {
    let path = medium(array, name);
    let medium = fs::read(&path).unwrap();
    // Values and blocks begin at multiples of 64.
    let mut places = (0..medium.len()).step_by(64);
    let Some(at) = places.find(|at| medium[*at..].starts_with(needle)) else { return false };
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let at = at + further;
    file.write_all_at(&[medium[at] ^ 4], at as u64).unwrap();
    true
}
