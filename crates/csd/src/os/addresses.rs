//! [`Addresses`]: the network of an array's operating systems.

use std::net::{IpAddr, Ipv4Addr};

use csd_store::array::{ArrayFile, OsRecord};

use crate::cli::tunnel::parse_network;
use crate::report::Failure;

/// Default network, with the host's address.
const NETWORK: &str = "10.77.0.1/24";

/// Addresses of this host and of an array's drives, which follow it in their order.
pub(crate) struct Addresses {
    host: Ipv4Addr,
    bits: u8,
    names: Vec<String>,
}

impl Addresses {
    /// Returns the addresses of an array; `None` if its operating systems have no network.
    ///
    /// # Errors
    /// If the network has no addresses for all drives.
    pub(crate) fn of(file: &ArrayFile) -> Result<Option<Self>, Failure> {
        // OpenSSH and the messages of a shared file system need one.
        let has_network = |os: &&OsRecord| os.key.is_some() || os.fs.is_some();
        let Some(os) = file.os.as_ref().filter(has_network) else { return Ok(None) };
        let network = os.network.as_deref().unwrap_or(NETWORK);
        let names = file.all().map(|drive| drive.name.clone()).collect();
        let addresses = Self::new(network, names);
        addresses.map(Some).map_err(|why| Failure::usage(format!("--os-network {network}: {why}")))
    }

    fn new(network: &str, names: Vec<String>) -> Result<Self, String> {
        let (IpAddr::V4(host), bits) = parse_network(network)? else {
            return Err("drives of an array have addresses of IPv4".to_owned());
        };
        let below = u32::MAX.checked_shr(bits.into()).unwrap_or_default();
        let (number, count) =
            (host.to_bits() & below, u32::try_from(names.len()).unwrap_or(u32::MAX));
        // The first address of a network and the last one are of no host.
        if number == 0 || number.saturating_add(count) >= below {
            return Err(format!(
                "this is no network with addresses for the host and {count} drives"
            ));
        }
        Ok(Self { host, bits, names })
    }

    /// Returns the addresses and names of the drives.
    pub(super) fn drives(&self) -> impl Iterator<Item = (IpAddr, &String)> {
        let numbers = (self.host.to_bits() + 1)..;
        numbers.zip(&self.names).map(|(bits, name)| (Ipv4Addr::from_bits(bits).into(), name))
    }

    /// Returns the options with which a drive has these addresses.
    pub(crate) fn options(&self, name: &str) -> Vec<String> {
        let bits = self.bits;
        let own = self.drives().find(|(_, other)| *other == name);
        own.map(|(address, _)| {
            let outside = format!("--tunnel-outside={}/{bits}", self.host);
            vec![outside, format!("--tunnel-inside={address}/{bits}")]
        })
        .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("d{number}")).collect()
    }

    #[test]
    fn drives_follow_the_host() {
        let addresses = Addresses::new("10.1.2.254/16", names(3)).unwrap();
        let options = addresses.options("d1");
        assert_eq!(options, ["--tunnel-outside=10.1.2.254/16", "--tunnel-inside=10.1.3.0/16"]);
        assert!(addresses.options("d3").is_empty());
    }

    #[test]
    fn networks_without_room_are_refused() {
        assert!(Addresses::new(NETWORK, names(253)).is_ok());
        for (network, count) in [
            (NETWORK, 254),
            ("10.0.0.0/24", 1),
            ("10.0.0.1/30", 2),
            ("10.0.0.1/31", 1),
            ("10.0.0.1/32", 1),
            ("fd00::1/64", 1),
            ("255.255.255.254/0", 2),
        ] {
            assert!(Addresses::new(network, names(count)).is_err(), "{network} {count}");
        }
        assert!(Addresses::new("10.0.0.1/30", names(1)).is_ok());
    }
}
