//! The text of a secrets file: one secret a line, of hosts and of controllers.
//!
//! This module parses text and reads no file; its errors repeat no secret. Invariants: an owner has
//! one secret; empty lines and lines that begin with `#` are comments, anything else unknown is an
//! error.
//!
//! ```text
//! host nqn.2026-11.io.csdstore:host DHHC-1:01:...:
//! controller DHHC-1:01:...:
//! controller nqn.2026-11.io.csdstore:drive DHHC-1:01:...:
//! ```
//!
//! A `controller` line without NQN applies to every subsystem without a line of its own.

use std::collections::BTreeMap;

use super::{Keys, Secret};
use crate::controller::connect::is_nqn;

/// Secrets by owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    hosts: BTreeMap<String, Secret>,
    controllers: BTreeMap<String, Secret>,
    any_controller: Option<Secret>,
}

impl Secrets {
    /// Parses the text of a secrets file.
    ///
    /// # Errors
    /// The mistake and its line, in words without any part of a secret.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut secrets = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            secrets.line(line).map_err(|why| format!("line {}: {why}", index + 1))?;
        }
        Ok(secrets)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        const FORM: &str = "not `host NQN SECRET` nor `controller [NQN] SECRET`";
        let words: Vec<&str> = line.split_whitespace().collect();
        let (kind, nqn, text) = match words[..] {
            [kind, text] => (kind, None, text),
            [kind, nqn, text] => (kind, Some(nqn), text),
            _ => return Err(FORM.to_owned()),
        };
        if nqn.is_some_and(|nqn| !is_nqn(nqn)) {
            return Err("the second word is not an NQN".to_owned());
        }
        let secret = || Secret::parse(text).map_err(|invalid| invalid.to_string());
        let before = match (kind, nqn) {
            ("host", Some(nqn)) => self.hosts.insert(nqn.to_owned(), secret()?),
            ("controller", Some(nqn)) => self.controllers.insert(nqn.to_owned(), secret()?),
            ("controller", None) => self.any_controller.replace(secret()?),
            _ => return Err(FORM.to_owned()),
        };
        match before {
            Some(_) => Err("a second secret of the same owner".to_owned()),
            None => Ok(()),
        }
    }

    /// Adds or replaces a host's secret.
    pub fn set_host(&mut self, nqn: &str, secret: Secret) {
        self.hosts.insert(nqn.to_owned(), secret);
    }

    /// Sets the secret of every controller without one of its own.
    pub fn set_controller(&mut self, secret: Secret) {
        self.any_controller = Some(secret);
    }

    /// Returns true if there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.controller("").is_none() && self.controllers.is_empty()
    }

    /// Returns the host's secret.
    pub fn host(&self, nqn: &str) -> Option<&Secret> {
        self.hosts.get(nqn)
    }

    /// Returns the NQNs of the hosts that have a secret.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.hosts.keys().map(String::as_str)
    }

    /// Returns the secret of the controllers of a subsystem.
    pub fn controller(&self, subsystem: &str) -> Option<&Secret> {
        self.controllers.get(subsystem).or(self.any_controller.as_ref())
    }

    /// Returns the secrets that this host and this subsystem prove to each other; `None` if the
    /// host has no secret.
    pub fn keys(&self, host: &str, subsystem: &str) -> Option<Keys> {
        Some(Keys {
            host_nqn: host.to_owned(),
            subsystem_nqn: subsystem.to_owned(),
            host: self.host(host)?.clone(),
            controller: self.controller(subsystem).cloned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Hash;

    fn text(byte: u8) -> String {
        Secret::new(Some(Hash::Sha256), &[byte; 32]).unwrap().to_text().to_string()
    }

    #[test]
    fn lines_are_found_by_owner_and_mistakes_by_line() {
        let (one, two, three) = (text(1), text(2), text(3));
        let file = format!(
            "# secrets\n\nhost nqn.a:h {one}\ncontroller {two}\ncontroller nqn.a:d {three}\n"
        );
        let secrets = Secrets::parse(&file).unwrap();
        assert_eq!(*secrets.host("nqn.a:h").unwrap().to_text(), one);
        assert_eq!(*secrets.controller("nqn.a:other").unwrap().to_text(), two);
        assert_eq!(*secrets.controller("nqn.a:d").unwrap().to_text(), three);
        assert!(secrets.keys("nqn.a:stranger", "nqn.a:d").is_none());
        assert_eq!(secrets.hosts().collect::<Vec<_>>(), ["nqn.a:h"]);
        for (wrong, words) in [
            (format!("host {one}"), "line 1: not `host NQN SECRET`"),
            (format!("\nguest nqn.a:h {one}"), "line 2: not `host NQN SECRET`"),
            (format!("host me {one}"), "not an NQN"),
            (format!("host nqn.a:h {one}\nhost nqn.a:h {two}"), "line 2: a second secret"),
            (format!("host nqn.a:h {}", &one[1..]), "a secret is DHHC-1"),
            ("controller".to_owned(), "not `host NQN SECRET`"),
        ] {
            let error = Secrets::parse(&wrong).unwrap_err();
            assert!(error.contains(words), "{error}");
            assert!(!error.contains(&one[10..]), "an error repeats a secret: {error}");
        }
        assert!(Secrets::parse("").unwrap().is_empty());
    }
}
