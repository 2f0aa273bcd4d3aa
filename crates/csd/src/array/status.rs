//! `csd array status`.

use csd_initiator::NamespaceKind;
use csd_store::array::{Array, ArrayFile, Drive, DriveIndex, OBJECTS_NSID, Plan};
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

/// Reports the state of every drive.
pub(crate) fn status(context: &Context) -> Result<Report, Failure> {
    let file = ArrayFile::load(context.array_path())?;
    let plan = Plan::new(&file);
    let rows =
        with_plan(&plan, context.options()?, async |array: &Array| Ok(query_drives(array).await))?;
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
    let rooms: Vec<Room> = rows.iter().flatten().map(|state| state.room).collect();
    let room = room::together(&rooms);
    let (mut drives, mut warnings) = (Vec::new(), Vec::new());
    for (record, row) in file.drives.iter().zip(rows) {
        let pid = record.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        let dash = || "-".to_owned();
        let (state, cells) = match &row {
            Ok(state) => {
                let objects = state.objects.map_or_else(dash, |objects| objects.to_string());
                let (kv, block) = (state.room.kv_bytes, state.room.block_bytes);
                let sizes = [state.kv_used_bytes, kv, state.block_used_bytes, block].map(size);
                let votes = state.why_not.is_none();
                (if votes { "up" } else { "no vote" }, [&sizes[..], &[objects]].concat())
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
            Ok(state) => {
                if let Some(why) = &state.why_not {
                    let (name, url) = (&record.name, &record.url);
                    warnings.push(format!(
                        "drive {name} ({url}) does not vote: {why}; `csd array rebuild` gives it \
                         its vote back"
                    ));
                    drive["why"] = why.clone().into();
                }
                state.describe(&mut drive);
            }
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

/// State reported by a drive that is up.
struct DriveState {
    bytes: u64,
    kv_used_bytes: u64,
    block_used_bytes: u64,
    room: Room,
    objects: Option<usize>,
    namespaces: Vec<Value>,
    /// Why it does not vote.
    why_not: Option<String>,
}

impl DriveState {
    fn describe(self, drive: &mut Value) {
        drive["size_bytes"] = self.bytes.into();
        drive["kv_used_bytes"] = self.kv_used_bytes.into();
        drive["block_used_bytes"] = self.block_used_bytes.into();
        drive["room"] = describe(&self.room);
        drive["objects"] = self.objects.into();
        drive["namespaces"] = self.namespaces.into();
    }
}

async fn query_drives(array: &Array) -> Vec<Result<DriveState, String>> {
    // Without a majority the objects are unknown; the drives are still shown. Damaged names are
    // among the warnings, as those of every command.
    let objects = object::list(array).await.ok();
    let mut rows = Vec::new();
    let slots = DriveIndex::each(array.slots()).filter(|(_, slot)| !slot.is_vacant());
    for (index, slot) in slots {
        let row = match slot.drive() {
            Ok(drive) => query_drive(array, drive).await.map(|mut state| {
                let holds = |entry: &csd_store::catalogue::Entry| entry.members.contains(&index);
                state.objects = objects
                    .as_ref()
                    .map(|listed| listed.sealed.iter().filter(|entry| holds(entry)).count());
                state
            }),
            Err(why) => Err(why.to_owned()),
        };
        rows.push(row);
    }
    rows
}

async fn query_drive(array: &Array, drive: &Drive) -> Result<DriveState, String> {
    let room = room::of_drive(array, drive).await.map_err(|error| error.to_string())?;
    let units = claimed_units(drive).await.map_err(|error| error.to_string())?;
    let mut state = DriveState {
        bytes: 0,
        kv_used_bytes: 0,
        block_used_bytes: units.len() as u64 * UNIT_BYTES,
        room,
        objects: None,
        namespaces: Vec::new(),
        why_not: array.slots()[drive.index].vote().err().map(ToOwned::to_owned),
    };
    for namespace in drive.controller.namespaces() {
        match namespace.kind {
            NamespaceKind::Block { blocks, block_bytes } => {
                state.bytes += blocks * u64::from(block_bytes);
            }
            NamespaceKind::Kv { bytes, used_bytes, .. } => {
                // The kv namespaces of a drive share one part of its media: each announces its own
                // records and what is left for all.
                let of_all = namespace.nsid == OBJECTS_NSID;
                state.bytes += if of_all { bytes } else { used_bytes };
                state.kv_used_bytes += used_bytes;
            }
            _ => {}
        }
        state.namespaces.push(namespace::describe(namespace));
    }
    Ok(state)
}
