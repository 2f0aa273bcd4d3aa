//! Reader of profiles: from TOML to [`Profile`], collecting faults.
//!
//! Checks the rules that involve several tables; the tables' declarations read the rest. Invariant:
//! `None` is returned only when a fault was noted.

use std::collections::{BTreeMap, HashSet};

use toml::{Table, Value};

use super::keys::{Keys, fault, is_name};
use super::table::{Form, Table as _};
use super::{Device, FaultAt, Host, Meta, Point, Profile, SCHEMA, Where};

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
    let meta = top.required("meta", Meta::read);
    let host = top.required("host", Host::read);
    let device = devices(&mut top);
    let point = points(&mut top, &table);
    match (meta, host, device, point) {
        (Some(meta), Some(host), Some(device), Some(point)) if faults.is_empty() => {
            Ok(Profile { schema: SCHEMA, meta, host, device, point })
        }
        _ => Err(faults),
    }
}

fn devices(top: &mut Keys<'_>) -> Option<BTreeMap<String, Device>> {
    let tables = top.required("device", Keys::plain_table)?;
    if tables.is_empty() {
        top.note("device", "empty, expected at least one device");
        return None;
    }
    let mut devices = BTreeMap::new();
    for (name, value) in tables {
        let path = format!("device.{name}");
        if !is_name(name) {
            top.faults.push(fault(&path, "expected a name of a-z, 0-9, _ and -"));
            continue;
        }
        match value {
            Value::Table(table) => {
                let device = Device::from_keys(&mut Keys::new(&path, table, top.faults));
                devices.extend(device.map(|device| (name.clone(), device)));
            }
            other => top.faults.push(fault(&path, &format!("{other}, expected a table"))),
        }
    }
    Some(devices)
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
        let point = Point::from_keys(&mut Keys::new(&path, point_table, top.faults));
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
