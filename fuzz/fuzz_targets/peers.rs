//! The file of peers: each drive is found by its name, and an error repeats no secret.

#![no_main]

use std::net::IpAddr;

use csd_drive::peers::PeerList;
use libfuzzer_sys::fuzz_target;

const TCP: &str = "nvme+tcp://";
/// A secret has more bytes than this, and what is said of its form fewer.
const SECRET_BYTES_MIN: usize = 44;

/// Returns true if every host is an address: names would be asked of a name server.
fn has_addresses_alone(text: &str) -> bool {
    text.split(TCP).skip(1).all(|url| {
        let authority = url.split('/').next().unwrap_or("");
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => host,
            _ => authority,
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        host.parse::<IpAddr>().is_ok()
    })
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if !has_addresses_alone(text) {
        return;
    }
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    match PeerList::parse(text) {
        Ok(list) => {
            let mut has_secrets = false;
            for line in words {
                let (url, secret) = (line[1], line.get(2));
                let nqn = url.find("/nqn.").map(|at| &url[at + 1..]).expect("a drive has a name");
                let peer = list.get(nqn).expect("it has a line");
                assert_eq!((&peer.address.nqn[..], peer.secret.is_some()), (nqn, secret.is_some()));
                has_secrets |= secret.is_some();
            }
            assert_eq!(list.has_secrets(), has_secrets);
        }
        Err(said) => {
            let is_secret =
                |word: &&str| word.starts_with("DHHC-1:") && word.len() > SECRET_BYTES_MIN;
            for secret in words.flatten().filter(is_secret) {
                assert!(!said.contains(secret), "{said}");
            }
        }
    }
});
