//! `csd drive service`: lists the services of drives, pauses and limits them.
//!
//! A drive knows its services, so an unknown name is found out by asking. Settings last until the
//! drive stops.

use csd_initiator::{Controller, Error};
use csd_nvme::NSID_ALL;
use csd_nvme::feature::{FeatureId, set_features};
use csd_nvme::log::{LogId, get_log_page};
use csd_nvme::opcode::Csi;
use csd_nvme::vendor::services::{Entry, FAILED, LOG_BYTES_MAX, Order, Services, Setting};
use serde_json::{Value, json};

use crate::ask_drives::{ask, malformed};
use crate::cli::drive_service::{self as cli, Rate, Service};
use crate::context::Context;
use crate::drive_trace::policy_name;
use crate::report::{Failure, Report};
use crate::table::{Align, Table};
use crate::units::{duration, grouped, seconds, size};

/// Answer of a drive: its services, or the reason why none of them can take the order.
type Asked = Result<Services, String>;

/// Lists services, or gives an order to one of them, on the named drive or on all drives of the
/// array.
pub(crate) fn service(options: &Service, context: &Context) -> Result<Report, Failure> {
    let (order, drive) = order_of(options);
    let asked = order.clone();
    let answers = ask(drive, context, async move |controller, _| match &asked {
        None => services_of(controller).await.map(Ok),
        Some(order) => give(controller, order).await,
    })?;
    let mut table = Table::new(&[
        ("drive", Align::Left),
        ("service", Align::Left),
        ("state", Align::Left),
        ("class", Align::Left),
        ("rate", Align::Right),
        ("share", Align::Right),
        ("steps", Align::Right),
        ("bytes", Align::Right),
        ("time", Align::Right),
    ]);
    let (mut described, mut warnings, mut unknown) = (Vec::new(), Vec::new(), None);
    let (mut cost, mut notes) = (None, Vec::new());
    for (name, answer) in answers {
        let services = match answer {
            Ok(Ok(services)) => services,
            Ok(Err(why)) => {
                let why = format!("drive {name} {why}");
                warnings.push(why.clone());
                unknown = Some(why);
                continue;
            }
            Err(why) => {
                warnings.push(format!("drive {name}: {why}"));
                continue;
            }
        };
        for entry in &services.entries {
            table.row(row(&name, entry));
            warnings.extend(failure(entry).map(|why| format!("drive {name}: {why}")));
            let service = entry.name_text();
            notes.extend(note(entry).map(|note| format!("{name} {service}: {note}\n")));
            cost = Some(entry.cost_text());
        }
        described.push(describe(&name, &services));
    }
    if let (true, Some(why)) = (described.is_empty(), unknown) {
        return Err(Failure::usage(why));
    }
    let mut text = table.render() + &notes.concat();
    if let (Some(Order { name, setting: Setting::Pause }), Some(cost)) = (&order, cost) {
        text.push_str(&format!("while {name} is paused, {cost}\n"));
    }
    Ok(Report::new(text, json!({ "drives": described })).with_warnings(warnings))
}

/// Returns the order that the options give, and the drive that they name.
fn order_of(options: &Service) -> (Option<Order>, Option<&String>) {
    let (service, setting, drive) = match &options.order {
        None => return (None, None),
        Some(cli::Order::List { drive }) => return (None, drive.as_ref()),
        Some(cli::Order::Pause(named)) => (&named.service, Setting::Pause, &named.drive),
        Some(cli::Order::Resume(named)) => (&named.service, Setting::Resume, &named.drive),
        Some(cli::Order::Rate { service, rate: Rate(rate), drive }) => {
            (service, Setting::Rate(*rate), drive)
        }
        Some(cli::Order::Share { service, percent, drive }) => {
            (service, Setting::Share(*percent), drive)
        }
        Some(cli::Order::Policy { service, policy, drive }) => {
            (service, Setting::Policy(policy.number()), drive)
        }
    };
    (Some(Order { name: service.clone(), setting }), drive.as_ref())
}

/// Asks a drive for its services.
pub(crate) async fn services_of(controller: &Controller) -> Result<Services, Error> {
    let bytes = u32::try_from(LOG_BYTES_MAX).expect("it is short");
    let sqe = get_log_page(LogId::SERVICES, NSID_ALL, Csi::NVM, 0, bytes);
    let data = controller.admin(sqe, &[], bytes).await?.data;
    Services::parse(&data).ok_or_else(|| malformed(controller, "log of services"))
}

/// Gives an order to a service; returns this service as it is then.
async fn give(controller: &Controller, order: &Order) -> Result<Asked, Error> {
    let before = services_of(controller).await?;
    let names: Vec<String> = before.entries.iter().map(Entry::name_text).collect();
    let wanted = &order.name;
    let Some(at) = names.iter().position(|name| name == wanted) else {
        return Ok(Err(format!("has no service {wanted:?}: it has {}", names.join(", "))));
    };
    if matches!(order.setting, Setting::Policy(_)) && before.entries[at].policy() == 0 {
        return Ok(Err(format!("has a service {wanted:?} that works where its data is")));
    }
    let sqe = set_features(FeatureId::SERVICES, 0, 0);
    controller.admin(sqe, &order.encode(), 0).await?;
    let mut after = services_of(controller).await?;
    after.entries.retain(|entry| entry.name_text() == order.name);
    Ok(Ok(after))
}

/// Returns why a service failed, as a warning.
pub(crate) fn failure(entry: &Entry) -> Option<String> {
    let (name, reason) = (entry.name_text(), entry.reason_text());
    (entry.state() == FAILED).then(|| {
        format!("service {name} failed and is paused: {reason} (csd drive service resume)")
    })
}

/// Returns a service in a line, for people.
pub(crate) fn line(entry: &Entry) -> String {
    let mut text = format!("{}: {}", entry.name_text(), entry.state_text().unwrap_or("?"));
    if entry.rate() > 0 {
        text.push_str(&format!(", at most {}", limit(entry)));
    }
    if entry.share() < 100 {
        text.push_str(&format!(", at most {} % of the time", entry.share()));
    }
    let (steps, bytes) = (grouped(entry.steps()), size(entry.bytes()));
    text.push_str(&format!("; {steps} steps, {bytes} in {}", duration(seconds(entry.busy_ns()))));
    match note(entry) {
        Some(note) => format!("{text}; {note}"),
        None => text,
    }
}

/// Returns the policy and the findings of a service, if it has any.
fn note(entry: &Entry) -> Option<String> {
    let policy = policy_name(entry.policy()).map(|policy| format!("policy {policy}"));
    let notes: Vec<String> = policy.into_iter().chain(entry.found_text()).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

fn limit(entry: &Entry) -> String {
    match entry.rate() {
        0 => "-".to_owned(),
        rate => format!("{}/s", size(rate)),
    }
}

fn row(drive: &str, entry: &Entry) -> Vec<String> {
    vec![
        drive.to_owned(),
        entry.name_text(),
        entry.state_text().unwrap_or("?").to_owned(),
        entry.class_text().unwrap_or("?").to_owned(),
        limit(entry),
        format!("{} %", entry.share()),
        grouped(entry.steps()),
        size(entry.bytes()),
        duration(seconds(entry.busy_ns())),
    ]
}

fn describe(drive: &str, services: &Services) -> Value {
    json!({
        "drive": drive,
        "segments": services.segments,
        "free_segments": services.free_segments,
        "services": services.entries.iter().map(described).collect::<Vec<_>>(),
    })
}

/// Returns a service for programs.
pub(crate) fn described(entry: &Entry) -> Value {
    json!({
        "name": entry.name_text(),
        "state": entry.state_text().unwrap_or("unknown"),
        "class": entry.class_text().unwrap_or("unknown"),
        "rate_bytes_per_s": Some(entry.rate()).filter(|rate| *rate > 0),
        "share_percent": entry.share(),
        "policy": policy_name(entry.policy()),
        "steps": entry.steps(),
        "bytes": entry.bytes(),
        "busy_s": seconds(entry.busy_ns()),
        "failures": entry.failures(),
        "reason": Some(entry.reason_text()).filter(|reason| !reason.is_empty()),
        "found": entry.found_text(),
        "pause_costs": entry.cost_text(),
    })
}
