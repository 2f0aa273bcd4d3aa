//! `csd tunnel up`: network namespaces that nothing but drives joins.

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};

use crate::support::data::bytes;
use crate::support::drive::{Drive, NQN};
use crate::support::harness::{binary, finish, wait_until};
use crate::support::json_page::Page;
use crate::support::netns::Namespaces;
use crate::support::tunnel::{Ends, TUNNEL_HOST, up};

/// Drive with a tunnel, and the URLs of its doors.
fn drive(options: &[&str]) -> (Drive, String, String) {
    let drive = Drive::serve(
        "memory",
        &[&["--inside", "inside", "--tunnel-host", TUNNEL_HOST][..], options].concat(),
    );
    let outside = drive.url();
    let inside = drive.inside_url("inside");
    (drive, outside, inside)
}

#[test]
fn a_host_reaches_the_inside_by_nothing_but_nvme() {
    let Some(namespaces) = Namespaces::for_tunnels("t", 2) else { return };
    let (mut drive, outside, inside) = drive(&["--tunnel-mtu", "9000"]);
    let array = &drive.array;
    // The sockets are of this namespace, the devices of the two others.
    let mut host = up(&namespaces, 0, array, (&outside, "csd0"));
    let mut guest = up(&namespaces, 1, array, (&inside, "csd0"));
    // A drive of the guest, which the host reaches through the tunnel.
    let serve = ["drive", "serve", "--media", "memory", "--size", "128M", "--allow-any-host"];
    let listen = ["--listen", "10.77.0.2:4420", "--nqn", NQN, "--ready-file", "guest-ready"];
    let serve = [&serve[..], &listen].concat();
    let mut served = Ends(Some(namespaces.csd(1, array, &serve)));
    wait_until("the guest serves", || array.path("guest-ready").exists());
    let url = format!("nvme+tcp://10.77.0.2:4420/{NQN}");
    let value = bytes(16, 16 << 20);
    array.file("value", &value);
    let kv = |arguments: &[&str]| {
        let arguments = [&["kv"], arguments, &["--drive", &url]].concat();
        finish(namespaces.csd(0, array, &arguments)).expect(0, &[])
    };
    kv(&["put", "value", "v"]);
    kv(&["get", "v", "back"]);
    assert!(fs::read(array.path("back")).unwrap() == value, "16 MiB each way");
    served.stop().expect(0, &[]);
    let done = host.stop().expect(0, &[]);
    let wrong = Page::read().wrong("tunnel up", "csd tunnel up", &done.json()["result"]);
    assert!(wrong.is_empty(), "{wrong:?}");
    guest.stop().expect(0, &[]);
    for number in 0..2 {
        assert!(namespaces.ip(number, "link show csd0").is_err(), "the device goes");
    }
    drive.stop().expect(0, &[]);
}

/// Addresses of a tunnel's network.
struct Plan {
    host: String,
    drives: [String; 2],
    /// Address of the network that is no drive's.
    forged: String,
    /// Address of the network that neither the host nor a drive has.
    unassigned: String,
    /// Address of another network.
    elsewhere: &'static str,
    /// Length of the network's prefix.
    bits: u8,
}

impl Plan {
    /// Names the addresses of a network, each by its last part.
    fn new(network: &str, bits: u8, elsewhere: &'static str) -> Self {
        let [host, first, second, forged, unassigned] =
            [1, 2, 3, 9, 99].map(|last| format!("{network}{last}"));
        Self { host, drives: [first, second], forged, unassigned, elsewhere, bits }
    }
}

#[test]
fn drives_reach_each_other_through_the_host_in_no_name_but_their_own() {
    reach_each_other("f", &Plan::new("10.77.0.", 24, "192.0.2.1"));
    if fs::metadata("/proc/sys/net/ipv6/conf/default/force_forwarding").is_err() {
        return eprintln!("SKIPPED for IPv6: forwarding by interface takes Linux 6.17");
    }
    reach_each_other("s", &Plan::new("fd77::", 64, "fd78::1"));
}

fn reach_each_other(test: &str, plan: &Plan) {
    let Some(namespaces) = Namespaces::for_tunnels(test, 4) else { return };
    let network = |address: &str| format!("{address}/{}", plan.bits);
    let outside = network(&plan.host);
    let drives = plan.drives.each_ref().map(|address| {
        drive(&["--tunnel-outside", &outside, "--tunnel-inside", &network(address)])
    });
    // Namespace 0 is the host's, with a device for each drive.
    let _hosts: Vec<Ends> = [("csd0", &drives[0]), ("csd1", &drives[1])]
        .map(|(device, (drive, url, _))| up(&namespaces, 0, &drive.array, (url, device)))
        .into();
    let _guests: Vec<Ends> = [(1, &drives[0]), (2, &drives[1])]
        .map(|(number, (drive, _, url))| up(&namespaces, number, &drive.array, (url, "csd0")))
        .into();
    let at = |address: &str| SocketAddr::new(address.parse::<IpAddr>().unwrap(), 7000);
    // From one drive to the other.
    let listener = namespaces.listener(2, at(&plan.drives[1]));
    let mut from = namespaces.connected(1, at(&plan.drives[1]));
    let (mut to, peer) = listener.accept().unwrap();
    assert_eq!(peer.ip(), plan.drives[0].parse::<IpAddr>().unwrap());
    let sent = bytes(3, 1 << 20);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            from.write_all(&sent).unwrap();
            from.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        to.read_to_end(&mut received).unwrap();
        assert!(received == sent);
    });
    let everywhere = match plan.host.contains(':') {
        true => "/proc/sys/net/ipv6/conf/all/forwarding",
        false => "/proc/sys/net/ipv4/ip_forward",
    };
    let setting = namespaces.within(0, || fs::read_to_string(everywhere).unwrap());
    assert_eq!(setting.trim(), "0", "forwarding is on for the tunnel's devices alone");
    only_its_own_packets(&namespaces, plan);
    nothing_leaves_the_tunnel(&namespaces, plan);
}

/// Sends packets that the host's end drops, then one that it takes: packets do not overtake.
fn only_its_own_packets(namespaces: &Namespaces, plan: &Plan) {
    let whole = if plan.host.contains(':') { 128 } else { 32 };
    let nodad = if whole == 128 { " nodad" } else { "" };
    namespaces.ip(0, "link set lo up").unwrap();
    namespaces.ip(0, &format!("addr add {}/{whole} dev lo{nodad}", plan.elsewhere)).unwrap();
    namespaces.ip(1, &format!("addr add {}/{whole} dev csd0{nodad}", plan.forged)).unwrap();
    namespaces.ip(1, &format!("route add {}/{whole} dev csd0", plan.elsewhere)).unwrap();
    let any = if whole == 128 { "[::]:7001" } else { "0.0.0.0:7001" };
    let host = namespaces.udp(0, any.parse().unwrap());
    let to = |address: &str| SocketAddr::new(address.parse().unwrap(), 7001);
    let from = |address: &str| namespaces.udp(1, SocketAddr::new(address.parse().unwrap(), 0));
    let (forged, own) = (from(&plan.forged), from(&plan.drives[0]));
    forged.send_to(b"forged", to(&plan.host)).unwrap();
    own.send_to(b"elsewhere", to(plan.elsewhere)).unwrap();
    own.send_to(b"own", to(&plan.host)).unwrap();
    let mut packet = [0; 16];
    let (length, sender) = host.recv_from(&mut packet).unwrap();
    assert_eq!(&packet[..length], b"own", "from {sender}");
}

/// The host gets a default route, to a machine that takes whatever comes. Neither this machine gets
/// a drive's packet to an unassigned address, nor a drive the host's.
fn nothing_leaves_the_tunnel(namespaces: &Namespaces, plan: &Plan) {
    let (any, whole, nodad, networks, beyond) = match plan.host.contains(':') {
        true => ("[::]", 128, " nodad", ["fd99::1/64", "fd99::2/64"], "fd99::2"),
        false => ("0.0.0.0", 32, "", ["192.168.9.1/24", "192.168.9.2/24"], "192.168.9.2"),
    };
    let peer = format!("link add out type veth peer name out netns {}", namespaces.name(3));
    namespaces.ip(0, &peer).unwrap();
    for (number, network) in [0, 3].into_iter().zip(networks) {
        namespaces.ip(number, "link set out up").unwrap();
        namespaces.ip(number, &format!("addr add {network} dev out{nodad}")).unwrap();
    }
    namespaces.ip(0, &format!("route add default via {beyond} dev out")).unwrap();
    namespaces.ip(3, "route add default dev out").unwrap();
    namespaces.ip(3, "link set lo up").unwrap();
    namespaces.ip(3, &format!("addr add {}/{whole} dev lo{nodad}", plan.unassigned)).unwrap();
    namespaces.ip(1, &format!("addr add {}/{whole} dev csd0{nodad}", plan.unassigned)).unwrap();
    let at = |address: &str, port| SocketAddr::new(address.parse().unwrap(), port);
    let takes_all = |number| namespaces.udp(number, format!("{any}:7002").parse().unwrap());
    let [host, drive, machine] = [0, 1, 3].map(takes_all);
    let first = |socket: &std::net::UdpSocket| {
        let mut packet = [0; 16];
        let (length, _) = socket.recv_from(&mut packet).unwrap();
        String::from_utf8_lossy(&packet[..length]).into_owned()
    };
    // Packets do not overtake.
    let own = namespaces.udp(2, at(&plan.drives[1], 0));
    own.send_to(b"out", at(&plan.unassigned, 7002)).unwrap();
    own.send_to(b"to the host", at(&plan.host, 7002)).unwrap();
    assert_eq!(first(&host), "to the host");
    host.send_to(b"out", at(&plan.unassigned, 7002)).unwrap();
    host.send_to(b"to the drive", at(&plan.drives[0], 7002)).unwrap();
    assert_eq!(first(&drive), "to the drive");
    host.send_to(b"beyond", at(beyond, 7002)).unwrap();
    assert_eq!(first(&machine), "beyond");
}

#[test]
fn what_cannot_be_tunnelled_is_refused_in_words() {
    let mut drive = Drive::serve("memory", &[]);
    let url = drive.url();
    let up = |arguments: &[&str]| drive.array.csd(&[&["tunnel", "up"], arguments].concat());
    up(&["--drive", &url, "--device", "a/b"]).expect(2, &["a device's name"]);
    let serve = ["drive", "serve", "--media", "memory", "--size", "64M", "--tunnel-mtu", "9000"];
    drive.array.csd(&serve).expect(2, &["--tunnel-host"]);
    let serve = [&serve[..6], &["--tunnel-host", TUNNEL_HOST]].concat();
    let with = |options: &[&str]| drive.array.csd(&[&serve[..], options].concat());
    with(&["--tunnel-outside", "fd77::1/64"]).expect(2, &["fd77::1 and 10.77.0.2", "say both"]);
    with(&["--tunnel-inside", "10.77.0.1/24"]).expect(2, &["both ends have the address 10.77.0.1"]);
    let six = ["--tunnel-outside", "fd77::1/64", "--tunnel-inside", "fd77::2/64"];
    with(&[&six[..], &["--tunnel-mtu", "1000"]].concat()).expect(2, &["IPv6 needs at least 1280"]);
    if fs::metadata("/dev/net/tun").is_err() {
        up(&["--drive", &url]).expect(2, &["/dev/net/tun is not there"]);
        return eprintln!("SKIPPED: /dev/net/tun is not there");
    }
    up(&["--drive", &url]).expect(2, &["it has no tunnel: start it with --tunnel-host"]);
    up(&["--drive", "nvme+tcp://127.0.0.1:1/nqn.2026-11.io.csdstore:x"])
        .expect(1, &["cannot be reached"]);
    drive.stop().expect(0, &[]);
    drive.start("memory", &["--tunnel-host", TUNNEL_HOST]);
    let url = drive.url();
    let up = ["tunnel", "up", "--drive", &url, "--host-nqn", TUNNEL_HOST];
    let none = [&up[..], &["--netns", "no-such-namespace"]].concat();
    drive.array.csd(&none).expect(2, &["network namespace no-such-namespace"]);
    // Another user, and a machine without TUN devices.
    let without = |program: &[&str]| {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg(binary());
        finish(drive.array.spawn_as(command, &up, Stdio::null()))
    };
    if !rustix::process::geteuid().is_root() {
        drive.array.csd(&up).expect(2, &["takes root or CAP_NET_ADMIN"]);
        return eprintln!("SKIPPED: mounting takes root");
    }
    let nobody = ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all"];
    let done = without(&nobody);
    // Where the folders of the program are closed to others, that cannot be tried.
    if matches!(done.code, 126 | 127) {
        eprintln!("SKIPPED: another user cannot run {}", binary().display());
    } else {
        let done = done.expect(2, &["takes root or CAP_NET_ADMIN"]);
        assert_eq!(done.stderr.trim().lines().count(), 1, "{}", done.stderr);
    }
    let hide = "mount -t tmpfs none /dev/net && exec \"$@\"";
    let done = without(&["unshare", "--mount", "sh", "-c", hide, "sh"]);
    let done = done.expect(2, &["/dev/net/tun is not there"]);
    assert_eq!(done.stderr.trim().lines().count(), 1, "{}", done.stderr);
}

#[test]
fn second_and_unknown_hosts_and_clashing_devices_are_refused_by_name() {
    let Some(namespaces) = Namespaces::for_tunnels("c", 2) else { return };
    let (drive, outside, _) = drive(&["--tunnel-host", "nqn.2026-11.io.csdstore:other"]);
    let up_as = |number: usize, url: &str, host: &str, options: &[&str]| {
        let up = ["tunnel", "up", "--drive", url, "--netns", namespaces.name(number)];
        drive.array.csd(&[&up[..], &["--host-nqn", host], options].concat())
    };
    let stranger = "nqn.2026-11.io.csdstore:stranger";
    up_as(1, &outside, stranger, &[]).expect(1, &[stranger, "name it with --tunnel-host"]);
    let mut first = up(&namespaces, 0, &drive.array, (&outside, "csd0"));
    let done = up_as(1, &outside, "nqn.2026-11.io.csdstore:other", &[]);
    done.expect(1, &[TUNNEL_HOST, "has this end of its tunnel"]);
    // Another drive with the same addresses, and a device that is there.
    let (mut other, same, _) = self::drive(&[]);
    up_as(0, &same, TUNNEL_HOST, &["--device", "csd0"]).expect(2, &["csd0 is in use", "--device"]);
    up_as(0, &same, TUNNEL_HOST, &[])
        .expect(1, &["a route to 10.77.0.2", "differ in --tunnel-inside"]);
    assert!(namespaces.ip(0, "link show csd1").is_err(), "the device of a refusal goes");
    // The same host takes its end over, and the first command says so.
    let _second = up(&namespaces, 1, &drive.array, (&outside, "csd0"));
    // It has printed its device, and prints why it ends.
    let said = finish(first.0.take().unwrap()).expect(1, &[]).text();
    assert!(said.contains("a later connection of this host has taken its tunnel over"), "{said}");
    other.stop().expect(0, &[]);
}
