//! The keys of one table of a profile: each value is read strictly, or a fault is noted.
//!
//! Does not coerce: `48.0`, `"48"` and `true` are not whole numbers. Invariant: `None` is returned
//! only when the key is absent or a fault was noted.

use toml::{Table, Value};

use super::{Energy, FaultAt, Overload, OverloadKind, Provenance, Provenances, Source, Timing};

pub(super) fn fault(path: &str, why: &str) -> FaultAt {
    FaultAt { path: path.to_owned(), why: why.to_owned() }
}

pub(super) const PROVENANCES: [(&str, Provenance); 4] = [
    ("given", Provenance::Given),
    ("measured", Provenance::Measured),
    ("inferred", Provenance::Inferred),
    ("assumed", Provenance::Assumed),
];

const SOURCES: [(&str, Source); 3] =
    [("rapl", Source::Rapl), ("meter", Source::Meter), ("cpu-seconds", Source::CpuSeconds)];

const OVERLOADS: [(&str, OverloadKind); 3] =
    [("memory", OverloadKind::Memory), ("cpu", OverloadKind::Cpu), ("io", OverloadKind::Io)];

/// The keys of one table, and the list of faults.
pub(super) struct Keys<'a> {
    path: &'a str,
    table: &'a Table,
    /// List of faults found.
    pub(super) faults: &'a mut Vec<FaultAt>,
}

impl<'a> Keys<'a> {
    pub(super) fn new(path: &'a str, table: &'a Table, faults: &'a mut Vec<FaultAt>) -> Self {
        Self { path, table, faults }
    }

    fn at(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(super) fn note(&mut self, key: &str, why: &str) {
        let path = self.at(key);
        self.faults.push(fault(&path, why));
    }

    pub(super) fn known(&mut self, known: &[&str]) {
        for key in self.table.keys().filter(|key| !known.contains(&key.as_str())) {
            self.note(key, "unknown key");
        }
    }

    /// Reads the value of `key` by `read`, which notes the faults of an existing value.
    pub(super) fn required<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut Self, &str) -> Option<T>,
    ) -> Option<T> {
        if !self.table.contains_key(key) {
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
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.table.get(key)?;
        let read = read(value);
        if read.is_none() {
            self.note(key, &format!("{value}, expected {expected}"));
        }
        read
    }

    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        let read = |value: &Value| value.as_str().filter(|t| !t.is_empty()).map(str::to_owned);
        self.read(key, "a text that is not empty", read)
    }

    pub(super) fn name(&mut self, key: &str) -> Option<String> {
        let read = |value: &Value| value.as_str().filter(|t| is_name(t)).map(str::to_owned);
        self.read(key, "a name of a-z, 0-9, _ and -", read)
    }

    pub(super) fn whole(&mut self, key: &str) -> Option<u64> {
        let read = |value: &Value| match value {
            Value::Integer(number) if *number > 0 => u64::try_from(*number).ok(),
            _ => None,
        };
        self.read(key, "a whole number from 1", read)
    }

    pub(super) fn amount(&mut self, key: &str) -> Option<f64> {
        #[allow(clippy::cast_precision_loss)] // amounts are measured: 53 bits are plenty
        let read = |value: &Value| match value {
            Value::Integer(number) if *number > 0 => Some(*number as f64),
            Value::Float(number) if number.is_finite() && *number > 0.0 => Some(*number),
            _ => None,
        };
        self.read(key, "a finite number greater than 0", read)
    }

    pub(super) fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let expected = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        self.read(key, &format!("one of {expected}"), |value| {
            let text = value.as_str()?;
            words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning)
        })
    }

    pub(super) fn table(&mut self, key: &str) -> Option<(String, Table)> {
        let path = self.at(key);
        let table = self.required(key, |keys, key| {
            keys.read(key, "a table", |value| value.as_table().cloned())
        });
        table.map(|table| (path, table))
    }

    pub(super) fn provenances(&mut self) -> Option<Provenances> {
        let table = self.read("prov", "a table", |value| value.as_table().cloned())?;
        let path = self.at("prov");
        let mut provenances = Provenances::new();
        let mut keys = Keys::new(&path, &table, self.faults);
        for key in table.keys() {
            if let Some(provenance) = keys.word(key, &PROVENANCES) {
                provenances.insert(key.clone(), provenance);
            }
        }
        for key in table.keys() {
            if key == "prov" || !self.table.contains_key(key) {
                let why = format!("prov names {key:?}, which is no number of this table");
                self.faults.push(fault(self.path, &why));
            }
        }
        Some(provenances)
    }

    pub(super) fn timing(&mut self, key: &str, point: Option<Provenance>) -> Option<Timing> {
        let table = self.read(key, "a table", |value| value.as_table().cloned())?;
        let path = self.at(key);
        let mut keys = Keys::new(&path, &table, self.faults);
        let before = keys.faults.len();
        keys.known(&["median", "p25", "p75", "n", "prov"]);
        let prov = keys.word("prov", &PROVENANCES);
        let Spread { median, p25, p75, n } = keys.spread(before)?;
        keys.in_order(median, p25, p75, n);
        let measured = prov.or(point) == Some(Provenance::Measured);
        if measured && (p25, p75, n) == (None, None, None) {
            // The fault is in the point's table if the value inherits the point's provenance.
            let at = if prov.is_some() { path.as_str() } else { self.path };
            let why = format!("measured, so p25, p75 and n are expected in {key}");
            self.faults.push(fault(at, &why));
        }
        Some(Timing { median, p25, p75, n, prov })
    }

    pub(super) fn energy(&mut self, key: &str) -> Option<Energy> {
        let table = self.read(key, "a table", |value| value.as_table().cloned())?;
        let path = self.at(key);
        let mut keys = Keys::new(&path, &table, self.faults);
        let before = keys.faults.len();
        keys.known(&["median", "p25", "p75", "n", "source"]);
        let source = keys.required("source", |keys, key| keys.word(key, &SOURCES));
        let Spread { median, p25, p75, n } = keys.spread(before)?;
        let source = source?;
        keys.in_order(median, p25, p75, n);
        if source != Source::CpuSeconds && (p25, p75, n) == (None, None, None) {
            self.faults.push(fault(&path, "measured, so p25, p75 and n are expected"));
        }
        Some(Energy { median, p25, p75, n, source })
    }

    pub(super) fn overload(&mut self, key: &str) -> Option<Overload> {
        let table = self.read(key, "a table", |value| value.as_table().cloned())?;
        let path = self.at(key);
        let mut keys = Keys::new(&path, &table, self.faults);
        let before = keys.faults.len();
        keys.known(&["kind", "memory_bytes", "rivals"]);
        let kind = keys.required("kind", |keys, key| keys.word(key, &OVERLOADS));
        let (memory_bytes, rivals) = (keys.whole("memory_bytes"), keys.whole("rivals"));
        if keys.faults.len() > before {
            return None;
        }
        let overload = Overload { kind: kind?, memory_bytes, rivals };
        let of_memory = overload.kind == OverloadKind::Memory;
        if memory_bytes.is_some() != of_memory || rivals.is_none() != of_memory {
            let why = "expected memory_bytes alone for memory, rivals alone for cpu and io";
            self.faults.push(fault(&path, why));
        }
        Some(overload)
    }

    /// Returns median and quartiles; `None` if a fault of the table was noted since `before`.
    fn spread(&mut self, before: usize) -> Option<Spread> {
        let (p25, p75, n) = (self.amount("p25"), self.amount("p75"), self.whole("n"));
        let median = self.required("median", Keys::amount);
        if self.faults.len() > before {
            return None;
        }
        Some(Spread { median: median?, p25, p75, n })
    }

    fn in_order(&mut self, median: f64, p25: Option<f64>, p75: Option<f64>, n: Option<u64>) {
        let why = match (p25, p75, n) {
            (None, None, None) => return,
            (Some(p25), Some(p75), Some(_)) if p25 <= median && median <= p75 => return,
            (Some(_), Some(_), Some(_)) => "expected p25 <= median <= p75",
            _ => "expected p25, p75 and n together",
        };
        self.faults.push(fault(self.path, why));
    }
}

/// Common part of timings and energies.
struct Spread {
    median: f64,
    p25: Option<f64>,
    p75: Option<f64>,
    n: Option<u64>,
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
