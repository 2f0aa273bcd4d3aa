//! `csd array status`.

use csd_initiator::NamespaceKind;
use csd_store::array::{Array, ArrayFile, Drive, OBJECTS_NSID, Plan};
use csd_store::extent::{UNIT_BYTES, claimed_units};
use csd_store::object;
use csd_store::room::{self, Room};
use serde_json::{Value, json};

use crate::context::{Context, with_plan};
use crate::namespace;
use crate::report::{Failure, Report};
use crate::room::{describe, takes};
use crate::table::{Align, Table};
use crate::units::size;

/// Shows every drive, up or down.
pub(crate) fn status(context: &Context) -> Result<Report, Failure> {
    let file = ArrayFile::load(context.array_path())?;
    let plan = Plan::new(&file);
    let rows = with_plan(&plan, context.options()?, async |array: &Array| Ok(look(array).await))?;
    let mut table = Table::new(&[
        ("drive", Align::Left),
        ("state", Align::Left),
        ("pid", Align::Right),
        ("kv used", Align::Right),
        ("kv free", Align::Right),
        ("blocks used", Align::Right),
        ("blocks free", Align::Right),
        ("objects", Align::Right),
        ("address", Align::Left),
    ]);
    let rooms: Vec<Room> = rows.iter().flatten().map(|seen| seen.room).collect();
    let room = room::together(&rooms);
    let (mut drives, mut warnings) = (Vec::new(), Vec::new());
    for (record, row) in file.drives.iter().zip(rows) {
        let pid = record.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        let dash = || "-".to_owned();
        let (state, cells) = match &row {
            Ok(seen) => {
                let objects = seen.objects.map_or_else(dash, |objects| objects.to_string());
                let (kv, block) = (seen.room.kv_bytes, seen.room.block_bytes);
                let sizes = [seen.kv_used_bytes, kv, seen.block_used_bytes, block].map(size);
                ("up", [&sizes[..], &[objects]].concat())
            }
            Err(_) => ("down", vec![dash(); 5]),
        };
        let mut cells = [vec![record.name.clone(), state.to_owned(), pid], cells].concat();
        cells.push(context.shown(&record.url));
        table.row(cells);
        let mut drive = json!({
            "name": record.name, "url": record.url, "pid": record.pid, "state": state,
        });
        match row {
            Ok(seen) => seen.describe(&mut drive),
            Err(why) => {
                warnings.push(format!("drive {} ({}) is down: {why}", record.name, record.url));
                drive["why"] = why.into();
            }
        }
        drives.push(drive);
    }
    let result = json!({
        "name": file.name, "uuid": file.uuid, "room": describe(&room), "drives": drives,
    });
    let text = format!("{}objects can take {}\n", table.render(), takes(&room));
    Ok(Report::new(text, result).with_warnings(warnings))
}

/// What a drive that is up says of itself.
struct Seen {
    bytes: u64,
    kv_used_bytes: u64,
    block_used_bytes: u64,
    room: Room,
    objects: Option<usize>,
    namespaces: Vec<Value>,
}

impl Seen {
    fn describe(self, drive: &mut Value) {
        drive["size_bytes"] = self.bytes.into();
        drive["kv_used_bytes"] = self.kv_used_bytes.into();
        drive["block_used_bytes"] = self.block_used_bytes.into();
        drive["room"] = describe(&self.room);
        drive["objects"] = self.objects.into();
        drive["namespaces"] = self.namespaces.into();
    }
}

async fn look(array: &Array) -> Vec<Result<Seen, String>> {
    // Without a majority nobody knows which objects there are; the drives still show.
    let objects = object::list(array).await.ok();
    let mut rows = Vec::new();
    for (index, slot) in array.slots().iter().enumerate() {
        let row = match slot.drive() {
            Ok(drive) => see(array, drive).await.map(|mut seen| {
                let holds = |entry: &csd_store::catalogue::Entry| {
                    entry.members.iter().any(|&member| usize::from(member) == index)
                };
                seen.objects = objects
                    .as_ref()
                    .map(|listed| listed.sealed.iter().filter(|entry| holds(entry)).count());
                seen
            }),
            Err(why) => Err(why.to_owned()),
        };
        rows.push(row);
    }
    rows
}

async fn see(array: &Array, drive: &Drive) -> Result<Seen, String> {
    let room = room::of_drive(array, drive).await.map_err(|error| error.to_string())?;
    let units = claimed_units(drive).await.map_err(|error| error.to_string())?;
    let mut seen = Seen {
        bytes: 0,
        kv_used_bytes: 0,
        block_used_bytes: units.len() as u64 * UNIT_BYTES,
        room,
        objects: None,
        namespaces: Vec::new(),
    };
    for namespace in drive.controller.namespaces() {
        match namespace.kind {
            NamespaceKind::Block { blocks, block_bytes } => {
                seen.bytes += blocks * u64::from(block_bytes);
            }
            NamespaceKind::Kv { bytes, used_bytes, .. } => {
                // The kv namespaces of a drive share one part of its media.
                if namespace.nsid == OBJECTS_NSID {
                    seen.bytes += bytes;
                }
                seen.kv_used_bytes += used_bytes;
            }
            _ => {}
        }
        seen.namespaces.push(namespace::describe(namespace));
    }
    Ok(seen)
}
