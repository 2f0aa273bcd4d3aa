//! The command line of a drive's tunnel.

use std::net::IpAddr;

use clap::{Args, Subcommand, value_parser};

use super::parse_nqn;

#[derive(Debug, Subcommand)]
pub(crate) enum Tunnel {
    /// Make a network device of one end of a drive's tunnel, until SIGTERM, SIGINT or SIGHUP
    ///
    /// Its address and MTU are those that the drive was started with. A URL of nvme+tcp:// has the
    /// host's end, one of nvme+unix:// (the socket of --inside) the drive's. While the drive is
    /// away packets wait or are lost, as on a cut cable; the device stays, and the command
    /// connects again. The host's end takes only packets from the drive's address to the tunnel's
    /// network, and forwards those to other drives. Needs root and /dev/net/tun.
    #[command(after_help = "\
Examples:
  csd tunnel up --drive nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.csdstore:drive
  csd tunnel up --drive nvme+unix:///run/d0.sock/nqn.2026-11.io.csdstore:drive --netns d0")]
    Up(Up),
}

/// Options of `csd tunnel up`.
#[derive(Args, Debug)]
pub(crate) struct Up {
    /// A drive's name in the array, or its URL
    #[arg(long, value_name = "NAME|URL")]
    pub(crate) drive: String,
    /// Network namespace for the device: a name of `ip netns`, or a path [default: this one]
    #[arg(long, value_name = "NAME|PATH")]
    pub(crate) netns: Option<String>,
    /// Name of the device, at most 15 characters [default: the first of csd0, csd1, ... that is
    /// free]
    #[arg(long, value_name = "NAME", value_parser = parse_device)]
    pub(crate) device: Option<String>,
}

fn parse_device(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match text.len() {
        1..=15 if text.chars().all(is_plain) && !text.starts_with('.') => Ok(text.to_owned()),
        _ => Err("a device's name has 1 to 15 letters, digits, - or _".to_owned()),
    }
}

/// Options of a drive's tunnel.
#[derive(Args, Debug)]
pub(crate) struct TunnelEnds {
    /// Carry IP packets between the host of this name and the drive's inside, by the vendor
    /// specific commands Tunnel Send and Receive; may be repeated. One host at a time has the
    /// tunnel
    #[arg(long, value_name = "NQN", value_parser = parse_nqn)]
    pub(crate) tunnel_host: Vec<String>,
    /// Address of the host's end, with the length of its network's prefix
    #[arg(long, value_name = "IP/BITS", value_parser = parse_network, requires = "tunnel_host")]
    #[arg(default_value = "10.77.0.1/24")]
    pub(crate) tunnel_outside: (IpAddr, u8),
    /// Address of the drive's end
    #[arg(long, value_name = "IP/BITS", value_parser = parse_network, requires = "tunnel_host")]
    #[arg(default_value = "10.77.0.2/24")]
    pub(crate) tunnel_inside: (IpAddr, u8),
    /// MTU of both ends, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 9000, requires = "tunnel_host")]
    #[arg(value_parser = value_parser!(u32).range(576..=65_535))]
    pub(crate) tunnel_mtu: u32,
}

/// Least MTU of IPv6, bytes (RFC 8200, section 5).
const V6_MTU_MIN: u32 = 1280;

impl TunnelEnds {
    /// Returns the tunnel, if there is one.
    ///
    /// # Errors
    /// The reason why there can be no such tunnel.
    pub(crate) fn options(&self) -> Result<Option<csd_drive::tunnel::Options>, String> {
        if self.tunnel_host.is_empty() {
            return Ok(None);
        }
        let networks = [self.tunnel_outside, self.tunnel_inside];
        let [(outside, _), (inside, _)] = networks;
        if outside.is_ipv4() != inside.is_ipv4() {
            let ends = "--tunnel-outside and --tunnel-inside";
            return Err(format!("{ends}: {outside} and {inside} are of two kinds of IP: say both"));
        }
        if outside == inside {
            return Err(format!("--tunnel-inside: both ends have the address {inside}"));
        }
        if inside.is_ipv6() && self.tunnel_mtu < V6_MTU_MIN {
            return Err(format!("--tunnel-mtu: IPv6 needs at least {V6_MTU_MIN} bytes"));
        }
        let hosts = self.tunnel_host.clone();
        Ok(Some(csd_drive::tunnel::Options { hosts, networks, mtu: self.tunnel_mtu }))
    }
}

/// Parses an address and the length of its network's prefix.
pub(crate) fn parse_network(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong = || "say an address and the bits of its network, as in 10.77.0.1/24".to_owned();
    let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let bits: u8 = bits.parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    if (1..=most).contains(&bits) { Ok((address, bits)) } else { Err(wrong()) }
}

#[test]
fn networks_are_addresses_with_bits() {
    assert_eq!(parse_network("10.77.0.1/24"), Ok(([10, 77, 0, 1].into(), 24)));
    assert_eq!(parse_network("fd00::1/64"), Ok(("fd00::1".parse().unwrap(), 64)));
    for wrong in
        ["", "10.77.0.1", "10.77.0.1/33", "fd00::1/129", "::1/0", "host/24", "10.77.0/24", "::/x"]
    {
        assert!(parse_network(wrong).is_err(), "{wrong}");
    }
}
