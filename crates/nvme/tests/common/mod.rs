//! Golden files: bytes as hexadecimal digits, and their fields.

#![allow(clippy::unwrap_used, unreachable_pub)] // golden files are ours; each test is a crate

use std::path::{Path, PathBuf};

/// Returns a folder of golden files.
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/golden").join(name)
}

/// Returns the files of a folder with this ending.
pub fn files(name: &str, ending: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|known| known == ending)).collect()
}

/// Returns the files of a folder whose bytes must be refused.
pub fn invalid(name: &str) -> Vec<PathBuf> {
    let is_invalid = |path: &PathBuf| path.to_string_lossy().contains("/invalid-");
    files(name, "hex").into_iter().filter(is_invalid).collect()
}

/// Returns the bytes of hexadecimal digits, between which there may be blanks.
pub fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}
