//! [`table!`] and [`words!`]: declarations of a profile's tables and words.
//!
//! The list of keys of a table is its struct, its reader and its writer, so none of them can know a
//! key that the others do not. Invariant: a reader returns `None` only when it noted a fault.

use toml::Value;

use super::Provenances;
use super::keys::Keys;

/// Value of a key: a number, a text, a word or a table in one line.
pub(super) trait Form: Sized {
    /// Reads the value of `key`, which the table has, or notes its faults.
    fn read(keys: &mut Keys<'_>, key: &str) -> Option<Self>;
    /// Returns the value as TOML.
    fn toml(&self) -> String;
}

/// Reader of a key's value.
type Read<'a, F> = fn(&mut Keys<'a>, &str) -> Option<F>;

/// Key of a table: a [`Form`] is required, an `Option` of one is not.
pub(super) trait Field: Sized {
    type Form;

    /// Reads the value of `key` by `read`; notes its faults, or that a required key is missing.
    fn get<'a>(keys: &mut Keys<'a>, key: &str, read: Read<'a, Self::Form>) -> Option<Self>;

    /// Returns the value as TOML; `None` if it is absent.
    fn value(&self) -> Option<String>;
}

impl<F: Form> Field for F {
    type Form = F;

    fn get<'a>(keys: &mut Keys<'a>, key: &str, read: Read<'a, F>) -> Option<F> {
        keys.required(key, read)
    }

    fn value(&self) -> Option<String> {
        Some(self.toml())
    }
}

impl<F: Form> Field for Option<F> {
    type Form = F;

    fn get<'a>(keys: &mut Keys<'a>, key: &str, read: Read<'a, F>) -> Option<Self> {
        Some(if keys.has(key) { read(keys, key) } else { None })
    }

    fn value(&self) -> Option<String> {
        self.as_ref().map(F::toml)
    }
}

/// Table of a profile.
pub(super) trait Table: Sized {
    /// Reads the table, or notes its faults.
    fn from_keys(keys: &mut Keys<'_>) -> Option<Self>;

    /// Returns the keys that are present, with their values as TOML.
    fn entries(&self) -> Vec<(&'static str, String)>;
}

impl<T: Table> Form for T {
    fn read(keys: &mut Keys<'_>, key: &str) -> Option<Self> {
        keys.table(key, Self::from_keys)
    }

    fn toml(&self) -> String {
        in_one_line(self.entries())
    }
}

impl Form for u64 {
    fn read(keys: &mut Keys<'_>, key: &str) -> Option<Self> {
        keys.whole(key)
    }

    fn toml(&self) -> String {
        self.to_string()
    }
}

impl Form for f64 {
    fn read(keys: &mut Keys<'_>, key: &str) -> Option<Self> {
        keys.amount(key)
    }

    fn toml(&self) -> String {
        Value::from(*self).to_string()
    }
}

impl Form for String {
    fn read(keys: &mut Keys<'_>, key: &str) -> Option<Self> {
        keys.text(key)
    }

    fn toml(&self) -> String {
        Value::from(self.as_str()).to_string()
    }
}

impl Form for Provenances {
    fn read(keys: &mut Keys<'_>, key: &str) -> Option<Self> {
        keys.provenances(key)
    }

    fn toml(&self) -> String {
        in_one_line(self.iter().map(|(key, provenance)| (key.as_str(), provenance.toml())))
    }
}

fn in_one_line<'a>(entries: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let entries = entries.into_iter().map(|(key, value)| format!("{key} = {value}"));
    format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
}

/// Returns true for an optional key that the table does not have.
pub(super) fn is_absent(field: &impl Field) -> bool {
    field.value().is_none()
}

/// Returns a field's name without the mark of a Rust keyword.
pub(super) fn plain(field: &str) -> &str {
    field.strip_prefix("r#").unwrap_or(field)
}

/// Declares a table: each field is a key of the same name. A field is read by its type's
/// [`Form::read`], or by the function after `=`. The function after `obeys` judges the keys
/// together, once each is sound.
macro_rules! table {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$doc:meta])* $field:ident: $kind:ty $(= $read:path)?),* $(,)? }
        $(obeys $rules:path)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[allow(non_snake_case)] // the contract's names end in units, as physics writes them
        pub struct $name {
            $(
                $(#[$doc])*
                #[serde(skip_serializing_if = "table::is_absent")]
                pub $field: $kind,
            )*
        }

        impl $crate::profile::table::Table for $name {
            #[allow(non_snake_case)]
            fn from_keys(keys: &mut $crate::profile::keys::Keys<'_>) -> Option<Self> {
                use $crate::profile::table::{Field, plain};
                keys.known(&[$(plain(stringify!($field))),*]);
                $(
                    let $field = <$kind as Field>::get(
                        keys,
                        plain(stringify!($field)),
                        $crate::profile::table::reader!($($read)?),
                    );
                )*
                let table = Self { $($field: $field?),* };
                $(
                    if !keys.are_sound() {
                        return None;
                    }
                    $rules(&table, keys);
                )?
                Some(table)
            }

            fn entries(&self) -> Vec<(&'static str, String)> {
                use $crate::profile::table::{Field, plain};
                let entries = [$((plain(stringify!($field)), Field::value(&self.$field))),*];
                entries.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
            }
        }
    };
}

/// Returns the reader of a field.
macro_rules! reader {
    () => {
        $crate::profile::table::Form::read
    };
    ($read:path) => {
        $read
    };
}

/// Declares an enumeration whose variants are words of the contract.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),* $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            const WORDS: &[(&str, Self)] = &[$(($word, Self::$variant)),*];

            fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl $crate::profile::table::Form for $name {
            fn read(keys: &mut $crate::profile::keys::Keys<'_>, key: &str) -> Option<Self> {
                keys.word(key, Self::WORDS)
            }

            fn toml(&self) -> String {
                format!("{:?}", self.word())
            }
        }
    };
}

pub(super) use {reader, table, words};
