//! [`Access`]: hosts that may connect, by name or by secret.
//!
//! Invariant: a host that has a secret is served only after it has authenticated itself. Only the
//! discovery log needs no secret, because stock hosts ask for it without one.

use csd_nvme::auth::{Offer, Secrets};

/// Hosts that may connect.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// NQNs that may connect without a secret. A name alone is a claim, not a proof.
    pub hosts: Vec<String>,
    /// True if hosts that are neither named nor have a secret may connect too.
    pub any_host: bool,
    /// Secrets of hosts, which must then authenticate themselves, and of this drive.
    pub secrets: Secrets,
    /// Hash functions and groups that authentication may use, best first.
    pub offer: Offer,
}

impl Access {
    /// Returns true if no host is named and none has a secret, so that a host needs no name.
    pub fn is_open(&self) -> bool {
        self.hosts.is_empty() && self.secrets.is_empty()
    }

    /// Returns true if the host may connect, after authentication if it has a secret. A drive that
    /// names no host takes every host.
    pub fn admits(&self, host: &str) -> bool {
        let named = self.hosts.iter().any(|nqn| nqn == host);
        self.any_host || self.is_open() || named || self.secrets.host(host).is_some()
    }
}

#[cfg(test)]
mod tests {
    use csd_nvme::auth::{Hash, Secret};

    use super::*;

    #[test]
    fn hosts_are_admitted_by_name_by_secret_or_all() {
        let mut access = Access::default();
        assert!(access.admits("nqn.a:x"), "nobody is named");
        access.hosts = vec!["nqn.a:named".into()];
        assert!(access.admits("nqn.a:named") && !access.admits("nqn.a:x"));
        assert!(!access.admits("nqn.a:name") && !access.admits("nqn.a:named2"));
        access.secrets.set_host("nqn.a:s", Secret::new(Some(Hash::Sha256), &[1; 32]).unwrap());
        assert!(access.admits("nqn.a:s") && access.admits("nqn.a:named"));
        access.hosts.clear();
        assert!(access.admits("nqn.a:s") && !access.admits("nqn.a:named"));
        access.any_host = true;
        assert!(access.admits("nqn.a:x"));
    }
}
