//! Fields of golden files.

use std::path::Path;

use toml::{Table, Value};

use crate::common::unhex;

/// Returns the fields and the bytes of a pair of golden files.
pub(crate) fn pair(path: &Path) -> (Table, Vec<u8>) {
    let bytes = unhex(&std::fs::read_to_string(path.with_extension("hex")).unwrap());
    (std::fs::read_to_string(path).unwrap().parse().unwrap(), bytes)
}

/// Returns a number.
pub(crate) fn integer<T: TryFrom<i64>>(value: &Value) -> T {
    T::try_from(value.as_integer().unwrap()).ok().unwrap()
}
