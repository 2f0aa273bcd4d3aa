//! `csd drive status`: health, space and limits that drives report.
//!
//! A [`Section`] is one subject; [`look`] lists them in display order. It works with any NVMe/TCP
//! drive, because it needs only standard commands. It changes nothing.

use csd_initiator::{Controller, Error, NamespaceKind};
use csd_nvme::identify::{Cns, IDENTIFY_BYTES, identify};
use csd_nvme::log::{LogId, Smart, WARNING_READ_ONLY, get_log_page};
use csd_nvme::opcode::Csi;
use csd_nvme::vendor::media_errors::{MediaErrors, VERSION};
use csd_nvme::vendor::services::{Entry, RUNS};
use csd_nvme::wire::text_of;
use csd_nvme::{NSID_ALL, log::WARNING_TEMPERATURE};
use serde_json::{Map, Value, json};

use crate::ask_drives::{ask, malformed};
use crate::cli::drive_status::Status;
use crate::context::Context;
use crate::drive_service;
use crate::namespace;
use crate::report::{Failure, Report};
use crate::table::pairs;
use crate::units::{grouped, percent, size};

/// Bytes of a data unit in the SMART / Health log.
pub(crate) const DATA_UNIT_BYTES: u64 = 512_000;

/// One subject of the report.
struct Section {
    /// Key in the JSON object.
    name: &'static str,
    /// Names and values, for people.
    lines: Vec<(&'static str, String)>,
    /// JSON value.
    value: Value,
    /// Warnings about this subject.
    warnings: Vec<String>,
}

impl Section {
    fn new(name: &'static str, lines: Vec<(&'static str, String)>, value: Value) -> Self {
        Self { name, lines, value, warnings: Vec::new() }
    }
}

/// Queries a drive about every subject.
async fn look(controller: &Controller) -> Result<Vec<Section>, Error> {
    let mut sections = vec![
        identity(controller),
        health(controller).await?,
        space(controller).await?,
        limits(controller),
        hosts(controller).await?,
    ];
    sections.extend(services(controller).await);
    Ok(sections)
}

/// Shows the named drive, or all drives of the array.
pub(crate) fn status(options: &Status, context: &Context) -> Result<Report, Failure> {
    let answers =
        ask(options.drive.as_ref(), context, async |controller, _| look(controller).await)?;
    let (mut text, mut described, mut warnings) = (String::new(), Vec::new(), Vec::new());
    for (drive, sections) in answers {
        let sections = match sections {
            Ok(sections) => sections,
            Err(why) => {
                warnings.push(format!("drive {drive}: {why}"));
                continue;
            }
        };
        let mut value = Map::from_iter([("drive".to_owned(), Value::from(drive.as_str()))]);
        let mut lines = vec![("drive", context.shown(&drive))];
        for section in sections {
            warnings.extend(section.warnings.iter().map(|why| format!("drive {drive}: {why}")));
            lines.extend(section.lines);
            value.insert(section.name.to_owned(), section.value);
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&pairs(&lines));
        described.push(Value::Object(value));
    }
    let result = json!({ "drives": described });
    Ok(Report::new(text, result).with_warnings(warnings))
}

fn identity(controller: &Controller) -> Section {
    let identity = controller.identity();
    let text = |bytes: &[u8]| text_of(bytes).unwrap_or("?").trim_end().to_owned();
    let (model, serial) = (text(&identity.mn()[..]), text(&identity.sn()[..]));
    let firmware = text(&identity.fr()[..]);
    let lines =
        vec![("model", format!("{model}, firmware {firmware}")), ("serial", serial.clone())];
    let value = json!({ "model": model, "serial": serial, "firmware": firmware });
    Section::new("identity", lines, value)
}

async fn health(controller: &Controller) -> Result<Section, Error> {
    let bytes = u32::try_from(Smart::SIZE).expect("512");
    let sqe = get_log_page(LogId::SMART, NSID_ALL, Csi::NVM, 0, bytes);
    let data = controller.admin(sqe, &[], bytes).await?.data;
    let smart = Smart::parse(&data).ok_or_else(|| malformed(controller, "health log"))?;
    let warning = smart.critical_warning();
    let mut warnings = Vec::new();
    for (bit, why) in [
        (WARNING_READ_ONLY, "its media are read-only"),
        (WARNING_TEMPERATURE, "its temperature is beyond a threshold"),
        (!(WARNING_READ_ONLY | WARNING_TEMPERATURE), "its health log has a critical warning"),
    ] {
        if warning & bit != 0 {
            warnings.push(format!("{why} (critical warning {warning:#04x})"));
        }
    }
    let (errors, entries) = (smart.media_errors(), smart.error_entries());
    let last = if errors > 0 { last_media_error(controller).await } else { None };
    let told = last.as_ref().map(told);
    let mut verdict = if warnings.is_empty() { "good".to_owned() } else { warnings.join(", ") };
    if errors > 0 {
        verdict.push_str(", but with media errors");
        let last = told.as_ref().map_or(String::new(), |told| format!(", the last: {told}"));
        warnings.push(format!("media errors: {}{last}", grouped(errors)));
    }
    let (read, written) = (smart.data_units_read(), smart.data_units_written());
    let moved = |units: u64| units.saturating_mul(DATA_UNIT_BYTES);
    let mut lines = vec![
        ("health", verdict),
        ("errors", format!("{} of media, {} failed commands", grouped(errors), grouped(entries))),
    ];
    lines.extend(told.map(|told| ("last", told)));
    lines.extend([
        (
            "spare",
            format!(
                "{} %, {} % of its life used",
                smart.available_spare(),
                smart.percentage_used()
            ),
        ),
        ("on", format!("{} h", grouped(smart.power_on_hours()))),
        ("moved", format!("{} read, {} written", size(moved(read)), size(moved(written)))),
    ]);
    let value = json!({
        "critical_warning": warning,
        "media_errors": errors,
        "last_media_error": last.as_ref().map(described),
        "error_entries": entries,
        "available_spare_percent": smart.available_spare(),
        "used_percent": smart.percentage_used(),
        "temperature_k": smart.temperature(),
        "power_on_h": smart.power_on_hours(),
        "unsafe_shutdowns": smart.unsafe_shutdowns(),
        "read_bytes": moved(read),
        "written_bytes": moved(written),
        "host_reads": smart.host_reads(),
        "host_writes": smart.host_writes(),
    });
    Ok(Section { warnings, ..Section::new("health", lines, value) })
}

/// Returns true for a CSDStore drive, which has log pages of its own.
fn is_ours(controller: &Controller) -> bool {
    let model = controller.identity().mn();
    text_of(&model[..]).is_some_and(|model| model.starts_with("CSDStore"))
}

/// Asks a CSDStore drive for its last media error; `None` if it does not tell, such as one of an
/// earlier version.
async fn last_media_error(controller: &Controller) -> Option<MediaErrors> {
    if !is_ours(controller) {
        return None;
    }
    let bytes = u32::try_from(MediaErrors::SIZE).expect("512");
    let sqe = get_log_page(LogId::MEDIA_ERRORS, NSID_ALL, Csi::NVM, 0, bytes);
    let data = controller.admin(sqe, &[], bytes).await.ok()?.data;
    let log = MediaErrors::parse(&data).filter(|log| log.version() == VERSION)?;
    log.operation_text().map(|_| log)
}

/// Returns the last media error in words.
fn told(log: &MediaErrors) -> String {
    let operation = log.operation_text().unwrap_or("access");
    let (place, reason) = (log.place_text(), log.reason_text());
    match log.bytes() {
        0 => format!("{operation} of {place}: {reason}"),
        bytes => format!("{operation} of {bytes} bytes at {} of {place}: {reason}", log.offset()),
    }
}

fn described(log: &MediaErrors) -> Value {
    json!({
        "operation": log.operation_text(),
        "offset": log.offset(),
        "bytes": log.bytes(),
        "media": log.place_text(),
        "reason": log.reason_text(),
    })
}

async fn space(controller: &Controller) -> Result<Section, Error> {
    let (mut lines, mut described) = (Vec::new(), Vec::new());
    for namespace in controller.namespaces() {
        let nsid = namespace.nsid;
        let words = match namespace.kind {
            NamespaceKind::Block { blocks, block_bytes } => {
                let bytes = size(blocks.saturating_mul(block_bytes.into()));
                format!("{nsid}: {bytes} of blocks of {block_bytes} bytes")
            }
            NamespaceKind::Kv { bytes, used_bytes, .. } => {
                let share = percent(used_bytes, bytes);
                format!("{nsid}: {} for values, {} ({share}) used", size(bytes), size(used_bytes))
            }
            NamespaceKind::Memory { bytes } => format!("{nsid}: {} of memory", size(bytes)),
            NamespaceKind::Compute => format!("{nsid}: programs"),
            _ => format!("{nsid}: another command set"),
        };
        lines.push(("space", words));
        described.push(namespace::describe(namespace));
    }
    Ok(Section::new("space", lines, described.into()))
}

fn limits(controller: &Controller) -> Section {
    let values = controller.namespaces().iter().filter_map(|namespace| match namespace.kind {
        NamespaceKind::Kv { value_bytes_max, .. } => Some(value_bytes_max),
        _ => None,
    });
    let value_bytes_max = values.max();
    let (transfer, queues) = (controller.transfer_bytes_max(), controller.io_queues());
    let commands = controller.identity().maxcmd();
    let mut lines = vec![("transfer", format!("at most {}", size(transfer.into())))];
    lines.extend(value_bytes_max.map(|max| ("value", format!("at most {}", size(max.into())))));
    lines.push(("queues", format!("{queues} for this host, of {commands} commands")));
    let value = json!({
        "transfer_bytes_max": transfer,
        "value_bytes_max": value_bytes_max,
        "io_queues": queues,
        "queue_commands_max": commands,
    });
    Section::new("limits", lines, value)
}

/// Asks a CSDStore drive for its services; `None` if it does not tell, such as one of an earlier
/// version.
async fn services(controller: &Controller) -> Option<Section> {
    if !is_ours(controller) {
        return None;
    }
    let found = drive_service::services_of(controller).await.ok()?;
    let lines = found.entries.iter().map(|entry| ("service", drive_service::line(entry)));
    let value = found.entries.iter().map(drive_service::described).collect();
    let mut warnings: Vec<String> =
        found.entries.iter().filter_map(drive_service::failure).collect();
    let cleans = |entry: &Entry| entry.name_text() != "clean" || entry.state() == RUNS;
    if found.is_low && !found.entries.iter().all(cleans) {
        warnings.push(format!(
            "{} of {} segments are free and its cleaning is paused: a Store or Delete that finds \
             none cleans first, and waits (csd drive service resume clean)",
            found.free_segments, found.segments
        ));
    }
    Some(Section { warnings, ..Section::new("services", lines.collect(), value) })
}

/// Lists the controllers; every connected host has one, this host included.
async fn hosts(controller: &Controller) -> Result<Section, Error> {
    let bytes = u32::try_from(IDENTIFY_BYTES).expect("4096");
    let sqe = identify(Cns::CONTROLLERS, 0, Csi::NVM);
    let data = controller.admin(sqe, &[], bytes).await?.data;
    let numbers: Vec<u16> =
        data.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
    let malformed = || malformed(controller, "list of controllers");
    let (count, ids) = numbers.split_first().ok_or_else(malformed)?;
    let ids = ids.get(..usize::from(*count)).ok_or_else(malformed)?;
    let own = controller.identity().cntlid();
    let line = format!("{count} connected, with this one (controller {own})");
    let value = json!({ "controllers": ids, "own_controller": own });
    Ok(Section::new("hosts", vec![("hosts", line)], value))
}
