//! The keys of one table of a profile: each value is read strictly, or a fault is noted.
//!
//! Does not coerce: `48.0`, `"48"` and `true` are not whole numbers. Invariant: `None` is returned
//! only when the key is absent or a fault was noted.

use toml::{Table, Value};

use super::{FaultAt, Provenance, Provenances};

pub(super) fn fault(path: &str, why: &str) -> FaultAt {
    FaultAt { path: path.to_owned(), why: why.to_owned() }
}

/// The keys of one table, and the list of faults.
pub(super) struct Keys<'a> {
    path: &'a str,
    table: &'a Table,
    /// Path and keys of the table that this one is in.
    outer: Option<(&'a str, &'a Table)>,
    /// List of faults found.
    pub(super) faults: &'a mut Vec<FaultAt>,
    /// Number of faults found before this table.
    before: usize,
}

impl<'a> Keys<'a> {
    pub(super) fn new(path: &'a str, table: &'a Table, faults: &'a mut Vec<FaultAt>) -> Self {
        Self { path, table, outer: None, before: faults.len(), faults }
    }

    fn at(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(super) fn note(&mut self, key: &str, why: &str) {
        let path = self.at(key);
        self.faults.push(fault(&path, why));
    }

    /// Notes a fault of the whole table.
    pub(super) fn note_here(&mut self, why: &str) {
        self.faults.push(fault(self.path, why));
    }

    /// Notes a fault of the table that this one is in.
    pub(super) fn note_outer(&mut self, why: &str) {
        let path = self.outer.map_or(self.path, |(path, _)| path);
        self.faults.push(fault(path, why));
    }

    /// Returns true if `key` has this word in the table that this one is in.
    pub(super) fn outer_is(&self, key: &str, word: &str) -> bool {
        self.outer.and_then(|(_, table)| table.get(key)?.as_str()) == Some(word)
    }

    /// Returns the last part of the table's path.
    pub(super) fn name_here(&self) -> &str {
        self.path.rsplit_once('.').map_or(self.path, |(_, key)| key)
    }

    /// Returns true if no fault of this table was noted.
    pub(super) fn are_sound(&self) -> bool {
        self.faults.len() == self.before
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Notes every key that is not one of `known`.
    pub(super) fn known(&mut self, known: &[&str]) {
        for key in self.table.keys().filter(|key| !known.contains(&key.as_str())) {
            self.note(key, &format!("unknown key, expected one of {}", known.join(", ")));
        }
    }

    /// Reads the value of `key` by `read`, which notes the faults of an existing value.
    pub(super) fn required<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut Self, &str) -> Option<T>,
    ) -> Option<T> {
        if !self.has(key) {
            self.note(key, "missing");
            return None;
        }
        read(self, key)
    }

    /// Reads the value of `key` by `read`, or notes the expected form.
    fn read<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.table.get(key)?;
        let read = read(value);
        if read.is_none() {
            self.note(key, &format!("{value}, expected {expected}"));
        }
        read
    }

    pub(super) fn whole(&mut self, key: &str) -> Option<u64> {
        self.read(key, "a whole number from 1", |value| match value {
            Value::Integer(number) if *number > 0 => u64::try_from(*number).ok(),
            _ => None,
        })
    }

    #[allow(clippy::cast_precision_loss)] // amounts are measured: 53 bits are plenty
    pub(super) fn amount(&mut self, key: &str) -> Option<f64> {
        self.read(key, "a finite number greater than 0", |value| match value {
            Value::Integer(number) if *number > 0 => Some(*number as f64),
            Value::Float(number) if number.is_finite() && *number > 0.0 => Some(*number),
            _ => None,
        })
    }

    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        let text = self.read(key, "a text that is not empty", |value| {
            value.as_str().filter(|text| !text.is_empty())
        });
        text.map(str::to_owned)
    }

    pub(super) fn name(&mut self, key: &str) -> Option<String> {
        let read = |value: &Value| value.as_str().filter(|t| is_name(t)).map(str::to_owned);
        self.read(key, "a name of a-z, 0-9, _ and -", read)
    }

    pub(super) fn date(&mut self, key: &str) -> Option<String> {
        let date = self.text(key)?;
        if is_date(&date) {
            return Some(date);
        }
        self.note(key, &format!("{date:?}, expected YYYY-MM-DD"));
        None
    }

    pub(super) fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let expected = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        self.read(key, &format!("one of {expected}"), |value| {
            let text = value.as_str()?;
            words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning)
        })
    }

    /// Returns the table under `key`.
    pub(super) fn plain_table(&mut self, key: &str) -> Option<&'a Table> {
        self.read(key, "a table", Value::as_table)
    }

    /// Reads the table under `key` by `read`.
    pub(super) fn table<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut Keys<'_>) -> Option<T>,
    ) -> Option<T> {
        let table = self.plain_table(key)?;
        let path = self.at(key);
        read(&mut Keys {
            outer: Some((self.path, self.table)),
            ..Keys::new(&path, table, self.faults)
        })
    }

    /// Reads the table of provenances under `key`: its keys are keys of this table.
    pub(super) fn provenances(&mut self, key: &str) -> Option<Provenances> {
        let table = self.plain_table(key)?;
        let path = self.at(key);
        let mut keys = Keys::new(&path, table, self.faults);
        let read = |name: &String| Some((name.clone(), keys.word(name, Provenance::WORDS)?));
        let provenances = table.keys().filter_map(read).collect();
        let own = self.table;
        for name in table.keys().filter(|name| *name == key || !own.contains_key(*name)) {
            let why = format!("prov names {name:?}, which is no number of this table");
            self.faults.push(fault(self.path, &why));
        }
        Some(provenances)
    }
}

pub(super) fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let first = bytes.first().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let allowed = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
    first && bytes.len() <= 64 && bytes.iter().all(allowed)
}

pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 10
        && bytes.iter().enumerate().all(|(index, byte)| match index {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}
