//! The list of peers: one drive a line, with its URL and its secret.
//!
//! ```text
//! # drives of array a
//! peer nvme+tcp://10.0.0.1:4420/nqn.2026-11.io.csdstore:d0 DHHC-1:01:...:
//! peer nvme+tcp://10.0.0.2:4420/nqn.2026-11.io.csdstore:d1
//! ```
//!
//! All drives of an array can have the same file: a drive takes its own secret from its own line,
//! and proves with it who it is, as a host and as a drive. Errors repeat no secret. Invariant: a
//! drive has one line.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use csd_initiator::{Address, Secret};
use csd_nvme::auth::secret;

/// A drive of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Address at which it serves.
    pub address: Address,
    /// Secret by which it proves its name.
    pub secret: Option<Secret>,
}

/// Drives by NQN.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerList(BTreeMap<String, Peer>);

impl PeerList {
    /// Parses the text of a file of peers. Resolves names of hosts, so it may block.
    ///
    /// # Errors
    /// The mistake and its line, in words without any part of a secret.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut list = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                list.line(line).map_err(|why| format!("line {}: {why}", index + 1))?;
            }
        }
        Ok(list)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (url, secret) = match words[..] {
            ["peer", url] => (url, None),
            ["peer", url, secret] => (url, Some(secret)),
            _ => return Err("not `peer URL` nor `peer URL SECRET`".to_owned()),
        };
        // What is said of a wrong URL repeats it.
        if url.contains(secret::PREFIX) {
            return Err("a secret stands where the URL belongs".to_owned());
        }
        let address: Address = url.parse().map_err(|error| format!("{error}"))?;
        if address.nsid.is_some() {
            return Err(format!("{url:?} names a namespace: leave ?nsid out"));
        }
        let secret = secret.map(Secret::parse).transpose().map_err(|error| error.to_string())?;
        match self.0.insert(address.nqn.clone(), Peer { address, secret }) {
            Some(before) => Err(format!("a second line of {}", before.address.nqn)),
            None => Ok(()),
        }
    }

    /// Returns the drive of this name.
    #[must_use]
    pub fn get(&self, nqn: &str) -> Option<&Peer> {
        self.0.get(nqn)
    }

    /// Returns true if any line has a secret.
    #[must_use]
    pub fn has_secrets(&self) -> bool {
        self.0.values().any(|peer| peer.secret.is_some())
    }
}

/// Reads the list whenever it is needed. May block.
#[derive(Clone)]
pub struct Directory(Arc<dyn Fn() -> Result<Arc<PeerList>, String> + Send + Sync>);

impl Directory {
    /// Makes a directory of a function that returns the list, or says why it cannot.
    pub fn new(read: impl Fn() -> Result<Arc<PeerList>, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// Makes a directory of a list that does not change.
    #[must_use]
    pub fn fixed(list: PeerList) -> Self {
        let list = Arc::new(list);
        Self::new(move || Ok(Arc::clone(&list)))
    }

    /// Returns the list as it is now.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn read(&self) -> Result<Arc<PeerList>, String> {
        (self.0)()
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Directory(..)")
    }
}

#[cfg(test)]
mod tests {
    use csd_nvme::auth::Hash;

    use super::*;

    const D0: &str = "nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.csdstore:d0";
    const D1: &str = "nvme+tcp://127.0.0.1:4421/nqn.2026-11.io.csdstore:d1";

    fn text(byte: u8) -> String {
        Secret::new(Some(Hash::Sha256), &[byte; 32]).unwrap().to_text().to_string()
    }

    #[test]
    fn drives_are_found_by_name_and_have_the_keys_of_both_sides() {
        let (one, two) = (text(1), text(2));
        let list = PeerList::parse(&format!("# a\n\npeer {D0} {one}\n peer {D1} {two}")).unwrap();
        let (d0, d1) = ("nqn.2026-11.io.csdstore:d0", "nqn.2026-11.io.csdstore:d1");
        assert_eq!(list.get(d1).unwrap().address.to_string(), D1);
        assert!(list.get("nqn.2026-11.io.csdstore:d2").is_none() && list.has_secrets());
        let keys = list.keys(d0, d1).unwrap();
        assert_eq!((&*keys.host.to_text(), &*keys.controller.unwrap().to_text()), (&one, &two));
        let open = PeerList::parse(&format!("peer {D0}\npeer {D1}")).unwrap();
        assert!(open.keys(d0, d1).is_none() && !open.has_secrets());
        assert_eq!(PeerList::parse("").unwrap(), PeerList::default());
    }

    #[test]
    fn mistakes_are_named_by_line_without_secrets() {
        let one = text(1);
        for (wrong, words) in [
            (format!("host {D0}"), "line 1: not `peer URL`"),
            (format!("peer {D0} {one} x"), "line 1: not `peer URL`"),
            ("\npeer 127.0.0.1".to_owned(), "line 2: \"127.0.0.1\" is not an address"),
            (format!("peer {D0}?nsid=3"), "leave ?nsid out"),
            (format!("peer {D0}\npeer {D0}"), "line 2: a second line of nqn"),
            (format!("peer {D0} {}", &one[1..]), "a secret is DHHC-1"),
            (format!("peer {one} {D0}"), "line 1: a secret stands where the URL belongs"),
            (format!("peer {D0}{one}"), "line 1: a secret stands where the URL belongs"),
        ] {
            let error = PeerList::parse(&wrong).unwrap_err();
            assert!(error.contains(words), "{error}");
            assert!(!error.contains(&one[10..]), "an error repeats a secret: {error}");
        }
    }
}
