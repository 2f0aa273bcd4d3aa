//! [`Device`]: a TUN device with offload, in any network namespace.
//!
//! A host's device is a link to one address. So several of them share the tunnel's network, and
//! packets of a drive are forwarded from its device alone: forwarding stays off everywhere else. A
//! route to the whole network, which goes with the device, keeps what it forwards in the tunnel.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tun_rs::{DeviceBuilder, SyncDevice};

use super::route::{self, To};
use crate::report::Failure;

const TUN: &str = "/dev/net/tun";
/// Template of a device's name: the kernel takes the first number that is free.
const NAME: &str = "csd%d";
/// Packets that wait in the kernel for a device to be read.
const QUEUE_PACKETS: u32 = 1000;

/// The device that a drive's tunnel asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// True for the host's end.
    pub(super) is_host: bool,
    /// Address of this end, and the length of its network's prefix.
    pub(super) network: (IpAddr, u8),
    /// Address of the far end.
    pub(super) far: IpAddr,
    /// MTU in bytes.
    pub(super) mtu: u32,
}

/// A TUN device; it is removed when this is dropped.
pub(super) struct Device {
    tun: SyncDevice,
    name: String,
    warnings: Vec<String>,
}

/// Checks that this machine has TUN devices.
pub(crate) fn check() -> Result<(), Failure> {
    // The crate would make the node of the device, with any rights.
    match fs::metadata(TUN) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::usage(format!(
            "csd tunnel up makes a network device, and {TUN} is not there ({error}): \
             load the module tun, or give the container the device"
        ))),
    }
}

impl Device {
    /// Makes a device, with this name or the next free one, in this network namespace or another.
    pub(super) fn make(
        name: Option<&str>,
        netns: Option<&str>,
        plan: &Plan,
    ) -> Result<Self, Failure> {
        let name = name.unwrap_or(NAME);
        in_namespace(netns, || {
            let tun = build(name, plan).map_err(|error| refused(name, &error))?;
            let name = tun.name().map_err(|error| Failure::os(name, &error))?;
            let mut device = Self { tun, name, warnings: Vec::new() };
            if plan.is_host {
                device.join_others(plan)?;
            }
            Ok(device)
        })
    }

    /// Returns the name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns warnings about the device.
    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns a descriptor of the device that does not block.
    pub(super) fn watched(&self) -> io::Result<OwnedFd> {
        let fd = self.tun.as_fd().try_clone_to_owned()?;
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(fd)
    }

    /// Makes the way to the drive, and lets its packets go on to other drives.
    fn join_others(&mut self, plan: &Plan) -> Result<(), Failure> {
        let index = self.tun.if_index().map_err(|error| Failure::os(&self.name, &error))?;
        // Packets to an unassigned address of the network would take the host's default route. They
        // end at this device's reader, which gives a drive packets to its own address alone.
        let (own, bits) = plan.network;
        route::add(To::Network(own, bits), index)
            .map_err(|error| Failure::os(format!("route to {own}/{bits}"), &error))?;
        route::add(To::Address(plan.far), index).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Failure::run(format!(
                "there is a route to {} already: drives of one host differ in --tunnel-inside",
                plan.far
            )),
            _ => Failure::os(format!("route to {}", plan.far), &error),
        })?;
        let settings: &[(&str, &str)] = match plan.far {
            IpAddr::V4(_) => &[("ipv4/conf", "forwarding"), ("ipv4/conf", "accept_source_route")],
            IpAddr::V6(_) => &[("ipv6/conf", "force_forwarding")],
        };
        for (folder, setting) in settings {
            let value = if *setting == "accept_source_route" { "0" } else { "1" };
            let path = Path::new("/proc/sys/net").join(folder).join(&self.name).join(setting);
            if let Err(error) = fs::write(&path, value) {
                let path = path.display();
                self.warnings.push(format!("{path}: {error}: drives do not reach each other"));
            }
        }
        Ok(())
    }
}

fn build(name: &str, plan: &Plan) -> io::Result<SyncDevice> {
    let mtu = u16::try_from(plan.mtu).unwrap_or(u16::MAX);
    let builder = DeviceBuilder::new().name(name).mtu(mtu).offload(true);
    let builder = builder.tx_queue_len(QUEUE_PACKETS);
    // The host's way to the drive is a route of its own, so that drives may share a network.
    let (address, bits) = plan.network;
    let builder = match (address, plan.is_host) {
        (IpAddr::V4(address), true) => builder.ipv4(address, 32, None),
        (IpAddr::V4(address), false) => builder.ipv4(address, bits, None),
        (IpAddr::V6(address), true) => builder.ipv6(address, 128),
        (IpAddr::V6(address), false) => builder.ipv6(address, bits),
    };
    builder.build_sync()
}

fn refused(name: &str, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::PermissionDenied => Failure::usage(format!(
            "csd tunnel up makes a network device, which takes root or CAP_NET_ADMIN: {error}"
        )),
        ErrorKind::ResourceBusy => {
            Failure::usage(format!("device {name} is in use: choose another name by --device"))
        }
        _ => Failure::os(format!("device {name}"), error),
    }
}

/// Runs `make` in another network namespace; this thread comes back from it.
fn in_namespace<T>(
    name: Option<&str>,
    make: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(name) = name else { return make() };
    let path = match name.contains('/') {
        true => PathBuf::from(name),
        false => Path::new("/run/netns").join(name),
    };
    let open = |path: &Path| {
        File::open(path)
            .map_err(|error| Failure::usage(format!("network namespace {name}: {error}")))
    };
    let (here, there) = (open(Path::new("/proc/thread-self/ns/net"))?, open(&path)?);
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
