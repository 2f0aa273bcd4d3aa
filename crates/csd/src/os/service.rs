//! `csd os service`: programs in operating systems that go on after the command.

use serde_json::json;

use super::target;
use crate::cli::os::{Service, StartService, StopService};
use crate::context::Context;
use crate::report::{Failure, Report};

pub(super) fn service(command: &Service, context: &Context) -> Result<Report, Failure> {
    match command {
        Service::Start(options) => start(options, context),
        Service::Stop(options) => stop(options, context),
    }
}

fn start(options: &StartService, context: &Context) -> Result<Report, Failure> {
    let target = target::one(&options.drive, context)?;
    let (name, program) = (&options.service, &options.program);
    let started = csd_os::service::start(&target.os_folder, name, program)?;
    let log = format!("{}/{name}.log", csd_os::config::LOGS);
    let text = format!("{}  service {name} started; its output: {log} inside\n", target.name);
    let result = json!({ "name": target.name, "service": name, "pid": started.pid, "log": log });
    Ok(Report::new(text, result))
}

fn stop(options: &StopService, context: &Context) -> Result<Report, Failure> {
    let target = target::one(&options.drive, context)?;
    let name = &options.service;
    let was_running = csd_os::service::stop(&target.os_folder, name)?;
    let words = if was_running { "ended" } else { "had ended" };
    let text = format!("{}  service {name} {words}\n", target.name);
    let result = json!({ "name": target.name, "service": name, "was_running": was_running });
    Ok(Report::new(text, result))
}
