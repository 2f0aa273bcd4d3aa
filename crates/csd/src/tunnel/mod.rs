//! `csd tunnel up`: a network device for one end of a drive's tunnel.
//!
//! [`mod@device`] makes the device that the drive's addresses ask for, and [`mod@route`] the way to
//! the far end. A [`TunnelEnd`] then carries packets on one core. The device goes with the process,
//! however that ends.

mod device;
mod route;

use std::cell::Cell;
use std::fs::File;
use std::net::IpAddr;

use csd_client::{Gate, TunnelCounts, TunnelEnd, TunnelError, TunnelPort};
use csd_reactor::{Stream, race, stop_requested};
use serde_json::{Value, json};

use crate::ask_drives::address_of;
use crate::cli::tunnel::Up;
use crate::context::Context;
use crate::report::{self, Failure, Report};
use crate::runtime::runtime;
pub(crate) use device::check;
use device::{Device, Plan};

impl From<TunnelError> for Failure {
    fn from(error: TunnelError) -> Self {
        match error {
            TunnelError::NoTunnel(_) => Self::usage(error),
            TunnelError::Drive(error) => csd_client::Error::Drive(error).into(),
            error => Self::run(error),
        }
    }
}

/// Carries packets until the process is asked to stop.
pub(crate) fn up(options: &Up, context: &Context) -> Result<Report, Failure> {
    check()?;
    let address = address_of(&options.drive, context)?;
    let connection = context.options()?;
    let (name, netns) = (options.device.clone(), options.netns.clone());
    let (json, quiet) = (context.json, context.quiet);
    // The CPU belongs to the programs that send and receive.
    let runtime = csd_reactor::Config { spin_us: 0, ..runtime() };
    let done = csd_reactor::block_on(&runtime, move || async move {
        let mut end = TunnelEnd::connect(&address, &connection).await?;
        let plan = plan(&end)?;
        let device = Device::make(name.as_deref(), netns.as_deref(), &plan)?;
        let watched = device.watched().and_then(|fd| Stream::of_device(File::from(fd)));
        let port = TunnelPort {
            device: watched.map_err(|error| Failure::os(device.name(), &error))?,
            // The drive's own operating system takes packets of the host and of other drives.
            gate: plan.is_host.then_some(Gate { drive: plan.far, network: plan.network }),
            counts: Cell::default(),
        };
        // Not before the device is there: a user's mistake takes no end from another command.
        end.join().await?;
        announce(&device, &plan, json, quiet);
        let stopped = async {
            stop_requested().await;
            None
        };
        let carried = async { Some(end.keep(&port, |lost| warn(lost, quiet)).await) };
        match race(stopped, carried).await {
            Some(error) => Err(Failure::from(error)),
            None => Ok(port.counts.get()),
        }
    });
    let counts = done.map_err(Failure::run)??;
    let TunnelCounts { sent, received, dropped } = counts;
    let text = format!("packets: {sent} sent, {received} received, {dropped} dropped\n");
    Ok(Report::new(text, Value::Null))
}

/// Returns the device that the drive's tunnel asks for.
fn plan(end: &TunnelEnd) -> Result<Plan, Failure> {
    let (log, side) = (end.log(), end.side());
    let networks = [log.ends[side].network(), log.ends[1 - side].network()];
    let [Some(network), Some((far, _))] = networks else {
        return Err(Failure::run("the drive's tunnel has no addresses"));
    };
    Ok(Plan { is_host: side == 0, network, far, mtu: log.mtu })
}

/// Prints that a connection was lost, or that there is one again.
fn warn(lost: Option<&TunnelError>, quiet: bool) {
    match lost {
        Some(error) => report::print_error(&format!("warning: {error}: connecting again")),
        None if !quiet => report::print_error("connected again"),
        None => {}
    }
}

/// Prints that the device is there.
fn announce(device: &Device, plan: &Plan, json: bool, quiet: bool) {
    let (name, mtu) = (device.name(), plan.mtu);
    let network = |(address, bits): (IpAddr, u8)| format!("{address}/{bits}");
    let (own, far) = (network(plan.network), plan.far.to_string());
    let warnings: Vec<_> = device.warnings().to_vec();
    if json {
        let result = json!({ "device": name, "address": own, "far": far, "mtu": mtu });
        let report = Report { warnings, ..Report::new("", result) };
        return report::print_json("tunnel up", &Ok(report));
    }
    if !quiet {
        report::print(&format!("device {name}, {own}, far end {far}, MTU {mtu}\n"));
    }
    warnings.iter().for_each(|warning| report::print_error(&format!("warning: {warning}")));
}
