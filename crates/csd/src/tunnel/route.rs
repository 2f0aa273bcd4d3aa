//! Routes through a device, by rtnetlink (Linux `rtnetlink(7)`).
#![allow(clippy::host_endian_bytes)] // a kernel's messages have the byte order of its machine

use std::io;
use std::net::IpAddr;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// Message types: a new route, and the reply to a request.
const RTM_NEWROUTE: u16 = 24;
const NLMSG_ERROR: u16 = 2;
/// A request with a reply (1, 4) that makes what is not there (200h exclusively, 400h).
const FLAGS: u16 = 0x1 | 0x4 | 0x200 | 0x400;
/// Routing table `main`, protocol `static`, scope `link`, type `unicast`.
const MAIN: u8 = 254;
const STATIC: u8 = 4;
const LINK: u8 = 253;
const UNICAST: u8 = 1;
/// Attributes of a route: destination, index of the device, and metric.
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_PRIORITY: u16 = 6;
/// Least metric of a route to a network: those of the host itself have less.
const NETWORK_METRIC: u32 = 1 << 30;
/// Length of a message's header.
const HEADER_BYTES: usize = 16;

/// Destination of a route.
#[derive(Clone, Copy, Debug)]
pub(super) enum To {
    /// To one address. There is one such route.
    Address(IpAddr),
    /// To the network of an address, with the length of its prefix. Each device has such a route,
    /// and that of another network of the host comes first.
    Network(IpAddr, u8),
}

/// Adds a route through the device of this index.
///
/// # Errors
/// `AlreadyExists` if there is one, or another refusal of the kernel.
pub(super) fn add(to: To, device: u32) -> io::Result<()> {
    // Protocol 0 of this family is NETLINK_ROUTE.
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    send(&socket, &request(to, device), SendFlags::empty())?;
    let mut reply = [0; 1024];
    let (count, _) = recv(&socket, &mut reply[..], RecvFlags::empty())?;
    outcome(&reply[..count])
}

/// Returns the request for a new route.
fn request(to: To, device: u32) -> Vec<u8> {
    let (address, bits, metric) = match to {
        To::Address(address) => (address, u8::MAX, None),
        // Routes of several devices to one network differ in it.
        To::Network(address, bits) => (address, bits, Some(NETWORK_METRIC.saturating_add(device))),
    };
    let (family, mut octets) = match address {
        IpAddr::V4(address) => (AddressFamily::INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AddressFamily::INET6, address.octets().to_vec()),
    };
    let family = u8::try_from(family.as_raw()).expect("2 or 10");
    let bits = bits.min(u8::try_from(8 * octets.len()).expect("32 or 128"));
    clear_after(&mut octets, bits);
    let mut body = vec![family, bits, 0, 0, MAIN, STATIC, LINK, UNICAST, 0, 0, 0, 0];
    let (device, metric) = (device.to_ne_bytes(), metric.map(u32::to_ne_bytes));
    let metric = metric.as_ref().map(|metric| (RTA_PRIORITY, &metric[..]));
    for (kind, value) in [(RTA_DST, &octets[..]), (RTA_OIF, &device)].into_iter().chain(metric) {
        let length = u16::try_from(4 + value.len()).expect("at most 20");
        body.extend_from_slice(&length.to_ne_bytes());
        body.extend_from_slice(&kind.to_ne_bytes());
        body.extend_from_slice(value);
    }
    let length = u32::try_from(HEADER_BYTES + body.len()).expect("at most 64");
    let mut message = length.to_ne_bytes().to_vec();
    message.extend_from_slice(&RTM_NEWROUTE.to_ne_bytes());
    message.extend_from_slice(&FLAGS.to_ne_bytes());
    // Sequence number and sender, which one request does without.
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(&body);
    message
}

/// Clears what follows the first `bits` bits: the kernel takes no host's part in a destination.
fn clear_after(octets: &mut [u8], bits: u8) {
    for (at, octet) in octets.iter_mut().enumerate() {
        let kept = usize::from(bits).saturating_sub(8 * at).min(8);
        *octet &= u8::try_from(0xFF00_u16 >> kept & 0xFF).expect("a byte");
    }
}

/// Returns the outcome that a reply tells.
fn outcome(reply: &[u8]) -> io::Result<()> {
    let error = reply.get(HEADER_BYTES..).and_then(|rest| rest.first_chunk::<4>());
    match (reply.get(4..6), error) {
        (Some(kind), Some(error)) if kind == NLMSG_ERROR.to_ne_bytes() => {
            match i32::from_ne_bytes(*error) {
                0 => Ok(()),
                error => Err(io::Error::from_raw_os_error(error.saturating_neg())),
            }
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_the_address_and_the_device() {
        let four = request(To::Address([10, 77, 0, 2].into()), 7);
        assert_eq!(four.len(), 44);
        assert_eq!(four[..4], 44_u32.to_ne_bytes());
        assert_eq!(four[16..24], [2, 32, 0, 0, 254, 4, 253, 1]);
        assert_eq!(four[32..36], [10, 77, 0, 2]);
        assert_eq!(four[40..], 7_u32.to_ne_bytes());
        let six = request(To::Address("fd00::2".parse().unwrap()), 7);
        assert_eq!((six.len(), &six[16..18]), (56, &[10, 128][..]));
    }

    #[test]
    fn routes_to_networks_have_no_hosts_part_and_a_metric_of_their_device() {
        let network = |address: &str, bits| request(To::Network(address.parse().unwrap(), bits), 7);
        let four = network("10.77.3.129", 23);
        assert_eq!(
            (four.len(), &four[16..18], &four[32..36]),
            (52, &[2, 23][..], &[10, 77, 2, 0][..])
        );
        assert_eq!(four[44..48], [8_u16.to_ne_bytes(), 6_u16.to_ne_bytes()].concat());
        assert_eq!(four[48..], ((1_u32 << 30) + 7).to_ne_bytes());
        for (address, bits, expected) in [
            ("10.77.0.3", 31, [10, 77, 0, 2]),
            ("10.77.0.3", 32, [10, 77, 0, 3]),
            ("129.0.0.1", 1, [128, 0, 0, 0]),
        ] {
            assert_eq!(network(address, bits)[32..36], expected, "{address}/{bits}");
        }
        let six = network("fd00::ffff", 127);
        assert_eq!((six.len(), six[17], six[46..48].to_vec()), (64, 127, vec![0xFF, 0xFE]));
    }

    #[test]
    fn replies_are_errors_or_none() {
        let reply = |kind: u16, error: i32| {
            let mut reply = vec![0; 36];
            reply[4..6].copy_from_slice(&kind.to_ne_bytes());
            reply[16..20].copy_from_slice(&error.to_ne_bytes());
            outcome(&reply)
        };
        assert!(reply(NLMSG_ERROR, 0).is_ok());
        let exists = reply(NLMSG_ERROR, -17).unwrap_err();
        assert_eq!(exists.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(reply(24, 0).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(outcome(&[0; 10]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
