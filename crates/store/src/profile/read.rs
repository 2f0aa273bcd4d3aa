//! The reader of profiles: from TOML to [`Profile`], collecting faults.
//!
//! Never coerces: `48.0`, `"48"` and `true` are no whole numbers. Invariant: `None` comes out
//! only when a fault was noted.

use std::collections::{BTreeMap, HashSet};

use toml::{Table, Value};

use super::{
    Device, FaultAt, Host, Layout, Meta, Overlap, Point, Profile, Provenance, Provenances, SCHEMA,
    Timing, Where,
};

pub(super) fn profile(text: &str) -> Result<Profile, Vec<FaultAt>> {
    let mut faults = Vec::new();
    let table: Table = match text.parse() {
        Ok(table) => table,
        Err(error) => {
            let error: toml::de::Error = error;
            return Err(vec![fault("(toml)", error.message())]);
        }
    };
    match table.get("schema") {
        Some(Value::Integer(SCHEMA)) => {}
        Some(other) => return Err(vec![fault("schema", &format!("{other}, expected 1"))]),
        None => return Err(vec![fault("schema", "missing, expected 1")]),
    }
    let mut top = Keys::new("", &table, &mut faults);
    top.known(&["schema", "meta", "host", "device", "point"]);
    let meta = top.table("meta").and_then(|(path, table)| meta(&path, &table, top.faults));
    let host = top.table("host").and_then(|(path, table)| host(&path, &table, top.faults));
    let device = devices(&mut top);
    let point = points(&mut top, &table);
    match (meta, host, device, point) {
        (Some(meta), Some(host), Some(device), Some(point)) if faults.is_empty() => {
            Ok(Profile { schema: SCHEMA, meta, host, device, point })
        }
        _ => Err(faults),
    }
}

fn fault(path: &str, why: &str) -> FaultAt {
    FaultAt { path: path.to_owned(), why: why.to_owned() }
}

fn meta(path: &str, table: &Table, faults: &mut Vec<FaultAt>) -> Option<Meta> {
    let mut keys = Keys::new(path, table, faults);
    keys.known(&["machine", "date", "version", "commit", "source", "note"]);
    let date = keys.text("date");
    if let Some(date) = date.as_ref().filter(|date| !is_date(date)) {
        keys.note("date", &format!("{date:?}, expected YYYY-MM-DD"));
    }
    let (version, commit) = (keys.text("version"), keys.text("commit"));
    let (source, note) = (keys.text("source"), keys.text("note"));
    let machine = keys.required("machine", Keys::text);
    Some(Meta { machine: machine?, date, version, commit, source, note })
}

#[allow(non_snake_case)]
fn host(path: &str, table: &Table, faults: &mut Vec<FaultAt>) -> Option<Host> {
    let mut keys = Keys::new(path, table, faults);
    let known = ["cores", "ingest_bw_Bps", "dram_bytes", "idle_W", "core_W", "price_usd", "prov"];
    keys.known(&known);
    let (ingest_bw_Bps, dram_bytes) = (keys.whole("ingest_bw_Bps"), keys.whole("dram_bytes"));
    let (idle_W, core_W) = (keys.amount("idle_W"), keys.amount("core_W"));
    let (price_usd, prov) = (keys.amount("price_usd"), keys.provenances());
    let cores = keys.required("cores", Keys::whole);
    Some(Host { cores: cores?, ingest_bw_Bps, dram_bytes, idle_W, core_W, price_usd, prov })
}

fn devices(top: &mut Keys<'_>) -> Option<BTreeMap<String, Device>> {
    let (_, tables) = top.table("device")?;
    if tables.is_empty() {
        top.note("device", "empty, expected at least one device");
        return None;
    }
    let mut devices = BTreeMap::new();
    for (name, value) in &tables {
        let path = format!("device.{name}");
        if !is_name(name) {
            top.faults.push(fault(&path, "expected a name of a-z, 0-9, _ and -"));
            continue;
        }
        match value {
            Value::Table(table) => {
                devices.insert(name.clone(), device(&path, table, top.faults));
            }
            other => top.faults.push(fault(&path, &format!("{other}, expected a table"))),
        }
    }
    Some(devices)
}

fn device(path: &str, table: &Table, faults: &mut Vec<FaultAt>) -> Device {
    let mut keys = Keys::new(path, table, faults);
    keys.known(&[
        "cores",
        "dram_bytes",
        "int_read_Bps",
        "int_write_Bps",
        "ext_read_Bps",
        "ext_write_Bps",
        "link_bw_Bps",
        "idle_W",
        "active_W",
        "price_usd",
        "capacity_bytes",
        "prov",
    ]);
    Device {
        cores: keys.whole("cores"),
        dram_bytes: keys.whole("dram_bytes"),
        int_read_Bps: keys.whole("int_read_Bps"),
        int_write_Bps: keys.whole("int_write_Bps"),
        ext_read_Bps: keys.whole("ext_read_Bps"),
        ext_write_Bps: keys.whole("ext_write_Bps"),
        link_bw_Bps: keys.whole("link_bw_Bps"),
        idle_W: keys.amount("idle_W"),
        active_W: keys.amount("active_W"),
        price_usd: keys.amount("price_usd"),
        capacity_bytes: keys.whole("capacity_bytes"),
        prov: keys.provenances(),
    }
}

fn points(top: &mut Keys<'_>, table: &Table) -> Option<Vec<Point>> {
    let values = match table.get("point") {
        Some(Value::Array(values)) if !values.is_empty() => values,
        Some(other) => {
            top.note("point", &format!("{other}, expected at least one [[point]]"));
            return None;
        }
        None => {
            top.note("point", "missing, expected at least one [[point]]");
            return None;
        }
    };
    let mut points = Vec::new();
    let mut seen = HashSet::new();
    for (index, value) in values.iter().enumerate() {
        let path = format!("point[{index}]");
        let Value::Table(point_table) = value else {
            top.faults.push(fault(&path, &format!("{value}, expected a table")));
            continue;
        };
        let point = point(&path, point_table, top.faults);
        let device = point_table.get("device").and_then(Value::as_str).filter(|n| is_name(n));
        let devices = table.get("device").and_then(Value::as_table);
        if let (Some(device), Some(devices)) = (device, devices)
            && !devices.contains_key(device)
        {
            let path = format!("{path}.device");
            top.faults.push(fault(&path, &format!("{device:?}, expected a [device.{device}]")));
        }
        let Some(point) = point else { continue };
        let same = (point.kernel.clone(), point.r#where == Where::Host, point.device.clone());
        if !seen.insert((same, point.units, point.bytes)) {
            top.faults.push(fault(&path, "the same kernel, where, device, units and bytes again"));
        }
        points.push(point);
    }
    Some(points)
}

fn point(path: &str, table: &Table, faults: &mut Vec<FaultAt>) -> Option<Point> {
    let mut keys = Keys::new(path, table, faults);
    keys.known(&[
        "kernel", "where", "device", "units", "bytes", "work", "layout", "overlap", "load_s",
        "comp_s", "store_s", "prov", "note",
    ]);
    let kernel = keys.required("kernel", Keys::name);
    let place = keys.required("where", |keys, key| {
        keys.word(key, &[("host", Where::Host), ("drive", Where::Drive)])
    });
    let device = keys.required("device", Keys::name);
    let units = keys.required("units", Keys::whole);
    let bytes = keys.required("bytes", Keys::whole);
    let work = keys.whole("work");
    let layouts = [("spread", Layout::Spread), ("range", Layout::Range), ("whole", Layout::Whole)];
    let layout = keys.word("layout", &layouts);
    let overlap = keys.required("overlap", |keys, key| {
        keys.word(key, &[("serial", Overlap::Serial), ("pipelined", Overlap::Pipelined)])
    });
    let prov = keys.required("prov", |keys, key| keys.word(key, &PROVENANCES));
    let note = keys.text("note");
    let load_s = keys.required("load_s", |keys, key| keys.timing(key, prov));
    let comp_s = keys.required("comp_s", |keys, key| keys.timing(key, prov));
    let store_s = keys.timing("store_s", prov);
    Some(Point {
        kernel: kernel?,
        r#where: place?,
        device: device?,
        units: units?,
        bytes: bytes?,
        work,
        layout,
        overlap: overlap?,
        load_s: load_s?,
        comp_s: comp_s?,
        store_s,
        prov: prov?,
        note,
    })
}

const PROVENANCES: [(&str, Provenance); 4] = [
    ("given", Provenance::Given),
    ("measured", Provenance::Measured),
    ("inferred", Provenance::Inferred),
    ("assumed", Provenance::Assumed),
];

/// The keys of one table, and where its faults go.
struct Keys<'a> {
    path: &'a str,
    table: &'a Table,
    faults: &'a mut Vec<FaultAt>,
}

impl<'a> Keys<'a> {
    fn new(path: &'a str, table: &'a Table, faults: &'a mut Vec<FaultAt>) -> Self {
        Self { path, table, faults }
    }

    fn at(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn note(&mut self, key: &str, why: &str) {
        let path = self.at(key);
        self.faults.push(fault(&path, why));
    }

    fn known(&mut self, known: &[&str]) {
        for key in self.table.keys().filter(|key| !known.contains(&key.as_str())) {
            self.note(key, "unknown key");
        }
    }

    /// The value of `key` by `read`, which notes what is wrong with a value that is there.
    fn required<T>(
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

    /// The value of `key` by `read`, or a note of what was expected.
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

    fn text(&mut self, key: &str) -> Option<String> {
        let read = |value: &Value| value.as_str().filter(|t| !t.is_empty()).map(str::to_owned);
        self.read(key, "a text that is not empty", read)
    }

    fn name(&mut self, key: &str) -> Option<String> {
        let read = |value: &Value| value.as_str().filter(|t| is_name(t)).map(str::to_owned);
        self.read(key, "a name of a-z, 0-9, _ and -", read)
    }

    fn whole(&mut self, key: &str) -> Option<u64> {
        let read = |value: &Value| match value {
            Value::Integer(number) if *number > 0 => u64::try_from(*number).ok(),
            _ => None,
        };
        self.read(key, "a whole number from 1", read)
    }

    fn amount(&mut self, key: &str) -> Option<f64> {
        #[allow(clippy::cast_precision_loss)] // amounts are measured: 53 bits are plenty
        let read = |value: &Value| match value {
            Value::Integer(number) if *number > 0 => Some(*number as f64),
            Value::Float(number) if number.is_finite() && *number > 0.0 => Some(*number),
            _ => None,
        };
        self.read(key, "a finite number greater than 0", read)
    }

    fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let expected = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        self.read(key, &format!("one of {expected}"), |value| {
            let text = value.as_str()?;
            words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning)
        })
    }

    fn table(&mut self, key: &str) -> Option<(String, Table)> {
        let path = self.at(key);
        let table = self.required(key, |keys, key| {
            keys.read(key, "a table", |value| value.as_table().cloned())
        });
        table.map(|table| (path, table))
    }

    fn provenances(&mut self) -> Option<Provenances> {
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

    fn timing(&mut self, key: &str, point: Option<Provenance>) -> Option<Timing> {
        let table = self.read(key, "a table", |value| value.as_table().cloned())?;
        let path = self.at(key);
        let before = self.faults.len();
        let mut keys = Keys::new(&path, &table, self.faults);
        keys.known(&["median", "p25", "p75", "n", "prov"]);
        let (p25, p75, n) = (keys.amount("p25"), keys.amount("p75"), keys.whole("n"));
        let prov = keys.word("prov", &PROVENANCES);
        let median = keys.required("median", Keys::amount);
        if self.faults.len() > before {
            return None;
        }
        let timing = Timing { median: median?, p25, p75, n, prov };
        match (p25, p75, n) {
            (Some(p25), Some(p75), Some(_)) if p25 > timing.median || timing.median > p75 => {
                self.faults.push(fault(&path, "expected p25 <= median <= p75"));
            }
            (Some(_), Some(_), Some(_)) => {}
            (None, None, None) if prov == Some(Provenance::Measured) => {
                self.faults.push(fault(&path, "measured, so p25, p75 and n are expected"));
            }
            (None, None, None) if prov.is_none() && point == Some(Provenance::Measured) => {
                let why = format!("measured, so p25, p75 and n are expected in {key}");
                self.faults.push(fault(self.path, &why));
            }
            (None, None, None) => {}
            _ => self.faults.push(fault(&path, "expected p25, p75 and n together")),
        }
        Some(timing)
    }
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let first = bytes.first().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let allowed = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
    first && bytes.len() <= 64 && bytes.iter().all(allowed)
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 10
        && bytes.iter().enumerate().all(|(index, byte)| match index {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}
