//! Reader of profiles: from TOML to [`Profile`], collecting faults.
//!
//! Checks the rules that involve several keys or tables; `keys` reads single values. Invariant:
//! `None` is returned only when a fault was noted.

use std::collections::{BTreeMap, HashSet};

use toml::{Table, Value};

use super::keys::{Keys, PROVENANCES, fault, is_date, is_name};
use super::{Device, FaultAt, Host, Layout, Meta, Overlap, Point, Profile, SCHEMA, Where};

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
        "target",
        "note",
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
        target: keys.text("target"),
        note: keys.text("note"),
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
        if !seen.insert((same, point.units, point.bytes, point.overload)) {
            let why = "the same kernel, where, device, units, bytes and overload again";
            top.faults.push(fault(&path, why));
        }
        points.push(point);
    }
    Some(points)
}

#[allow(non_snake_case)]
fn point(path: &str, table: &Table, faults: &mut Vec<FaultAt>) -> Option<Point> {
    let mut keys = Keys::new(path, table, faults);
    keys.known(&[
        "kernel",
        "where",
        "device",
        "units",
        "bytes",
        "work",
        "layout",
        "overlap",
        "load_s",
        "comp_s",
        "store_s",
        "pipelined_s",
        "energy_J",
        "overload",
        "prov",
        "note",
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
    let (store_s, pipelined_s) = (keys.timing("store_s", prov), keys.timing("pipelined_s", prov));
    let (energy_J, overload) = (keys.energy("energy_J"), keys.overload("overload"));
    if overload.is_some() && place == Some(Where::Drive) {
        keys.faults.push(fault(path, "an overload, which only host points may have"));
    }
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
        pipelined_s,
        energy_J,
        overload,
        prov: prov?,
        note,
    })
}
