//! Types of Arrow as types of Substrait.
//!
//! Substrait has one text, one kind of bytes and no integers without a sign; Arrow has several
//! layouts of each. They are variations of a type, with the numbers that DataFusion's producer
//! gives them. Nor has Substrait time zones, or names for what lists hold: those are variations
//! that a plan declares by name. Invariant: a type is written only if it is read back as the same
//! one; other types have no form, and their columns stay on the host.
//!
//! Modules: `write` and `read` are the two directions.

mod read;
mod write;

use datafusion::arrow::datatypes::TimeUnit;

pub(crate) use read::{read, read_schema, read_zone};
pub(crate) use write::{write, write_schema, zone_variation};

/// The usual layout of a type.
pub(crate) const USUAL: u32 = 0;
/// Integers without a sign.
pub(crate) const UNSIGNED: u32 = 1;
/// Text and bytes with offsets of 64 bits.
pub(crate) const LARGE: u32 = 1;
/// Text and bytes of views.
pub(crate) const VIEW: u32 = 2;

/// Zone of points in time whose variation is the usual one.
const UTC: &str = "UTC";
/// Names of declared variations begin with these: the zone of points in time, the name of what a
/// list holds, and those of a map's entries, keys and values with a slash between them.
const ZONE: &str = "zone ";
const ITEM: &str = "item ";
const ENTRIES: &str = "entries ";

/// Returns the digits of a second after the point.
pub(crate) const fn precision(unit: TimeUnit) -> i32 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

/// Returns the unit with this many digits of a second after the point.
pub(crate) const fn unit(precision: i32) -> Option<TimeUnit> {
    match precision {
        0 => Some(TimeUnit::Second),
        3 => Some(TimeUnit::Millisecond),
        6 => Some(TimeUnit::Microsecond),
        9 => Some(TimeUnit::Nanosecond),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
