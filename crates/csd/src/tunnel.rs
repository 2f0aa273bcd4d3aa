//! `csd tunnel up`: a network device for one end of a drive's tunnel.
//!
//! The device is made by `tun-rs`, with offload, and with the address that the drive names. Then a
//! [`TunnelEnd`] carries packets, on one core, over one connection after the other.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use csd_client::{Address, TunnelEnd, TunnelError, TunnelLog};
use csd_reactor::{Stream, race, sleep, stop_requested};
use csd_store::Options;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::{Value, json};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::cli::tunnel::Up;
use crate::context::Context;
use crate::query::address_of;
use crate::report::{self, Failure, Report};
use crate::runtime::runtime;

/// Pause between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(200);

/// Carries packets until the process is asked to stop.
pub(crate) fn up(options: &Up, context: &Context) -> Result<Report, Failure> {
    let address = address_of(&options.drive, context)?;
    let connection = context.options()?;
    let log = look(&address, &connection)?;
    // The inside of a drive is reached by its Unix socket.
    let side = usize::from(address.socket.path().is_some());
    let network = |side: usize| {
        let none = || Failure::run(format!("drive {address}: its tunnel has no addresses"));
        log.ends[side].network().ok_or_else(none)
    };
    let (own, (far, _)) = (network(side)?, network(1 - side)?);
    let device = in_namespace(options.netns.as_deref(), || make(&options.device, own, log.mtu))?;
    announce(&options.device, own, log.mtu, context);
    // On a host, nothing comes from a drive in another one's name.
    let far = (side == 0).then_some(far);
    let done = csd_reactor::block_on(&runtime(), move || async move {
        let watched = device.as_fd().try_clone_to_owned().and_then(|fd| {
            rustix::io::ioctl_fionbio(&fd, true)?;
            Stream::of_device(File::from(fd))
        });
        let watched = Rc::new(watched.map_err(|error| Failure::os("the device", &error))?);
        let carried = carry(&address, &connection, &watched, far);
        let stopped = async {
            stop_requested().await;
            Ok(())
        };
        race(stopped, carried).await
    });
    done.map_err(Failure::run)??;
    Ok(Report::new("", Value::Null))
}

/// Asks the drive for its tunnel.
fn look(address: &Address, connection: &Options) -> Result<TunnelLog, Failure> {
    let (address, connection) = (address.clone(), connection.clone());
    let looked = csd_reactor::block_on(&runtime(), move || async move {
        TunnelEnd::connect(&address, &connection).await?.log().await
    });
    looked.map_err(Failure::run)?.map_err(|error| match error {
        TunnelError::NoTunnel(_) => Failure::usage(error),
        TunnelError::Drive(error) => csd_client::Error::Drive(error).into(),
        error => Failure::run(error),
    })
}

/// Carries packets over one connection after the other.
async fn carry(
    address: &Address,
    connection: &Options,
    device: &Stream,
    far: Option<IpAddr>,
) -> Result<(), Failure> {
    let mut said = String::new();
    loop {
        let ended = match TunnelEnd::connect(address, connection).await {
            Ok(end) => {
                said.clear();
                end.carry(device, far).await
            }
            Err(error) => error,
        };
        if matches!(ended, TunnelError::Device(_) | TunnelError::Refused(_)) {
            return Err(Failure::run(ended));
        }
        let why = ended.to_string();
        if why != said {
            report::print_error(&format!("warning: {why}: connecting again"));
            said = why;
        }
        sleep(PAUSE).await;
    }
}

/// Makes the device.
fn make(name: &str, (address, bits): (IpAddr, u8), mtu: u32) -> Result<SyncDevice, Failure> {
    let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
    let builder = DeviceBuilder::new().name(name).mtu(mtu).offload(true);
    let builder = match address {
        IpAddr::V4(address) => builder.ipv4(address, bits, None),
        IpAddr::V6(address) => builder.ipv6(address, bits),
    };
    builder.build_sync().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound => Failure::usage(format!(
            "csd tunnel up needs /dev/net/tun and the right to make devices (root): {error}"
        )),
        _ => Failure::os(format!("device {name}"), &error),
    })
}

/// Runs `make` in another network namespace; this thread comes back from it.
fn in_namespace<T>(
    name: Option<&str>,
    make: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(name) = name else { return make() };
    let path = match name.contains('/') {
        true => PathBuf::from(name),
        false => PathBuf::from("/run/netns").join(name),
    };
    let open = |path: &str| File::open(path).map_err(|error| Failure::os(path, &error));
    let (here, there) = (open("/proc/thread-self/ns/net")?, open(&path.to_string_lossy())?);
    let enter = |namespace: &File| {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
    };
    enter(&there).map_err(|error| {
        Failure::usage(format!("network namespace {name} cannot be entered (root can): {error}"))
    })?;
    let made = make();
    enter(&here).map_err(|error| Failure::run(format!("cannot leave {name}: {error}")))?;
    made
}

/// Prints that the device is there.
fn announce(device: &str, (address, bits): (IpAddr, u8), mtu: u32, context: &Context) {
    let address = format!("{address}/{bits}");
    if context.json {
        let result = json!({ "device": device, "address": address, "mtu": mtu });
        report::print_json("tunnel up", &Ok(Report::new("", result)));
    } else if !context.quiet {
        report::print(&format!("device {device}, {address}, MTU {mtu}\n"));
    }
}
