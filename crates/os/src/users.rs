//! The user namespace of an operating system: its users have accounts of their own.
//!
//! The kernel counts what a user has of inotify, queued signals, message queues and locked memory
//! for the user in its namespace, and for the user that made that namespace. Here a user of an
//! unused number makes it, so that nothing counts for root of this machine, or for another user of
//! it. Each user inside is the one of the same number outside: owners of files stay.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use crate::{Error, tools};

/// First of the numbers that systemd's documentation of users lists as unused, and how many of them
/// are taken.
const MAKERS: u32 = 0x7000_0000;
const MAKERS_COUNT: u32 = 1 << 27;
/// Users of a namespace, all but the last number, which stands for none.
pub(crate) const USERS: u32 = u32::MAX;
/// Program that keeps the namespace until its input ends, so also if this process is killed.
const KEEP: &str = "echo made && read -r end";

/// A user namespace that no process of the operating system is in yet. It goes on drop, unless one
/// is.
pub(crate) struct Users {
    keeper: Child,
}

impl Users {
    /// Makes the namespace for the operating system of this identifier.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn make(id: &str) -> Result<Self, Error> {
        let maker = maker(id).to_string();
        let mut command = tools::command("setpriv");
        command.args(["--reuid", &maker, "--regid", &maker, "--clear-groups"]);
        // Some machines refuse namespaces to users without this capability. It ends with the
        // first step: it is none in the namespace around.
        command.args(["--inh-caps", "+sys_admin", "--ambient-caps", "+sys_admin"]);
        command.args(["unshare", "--user", "sh", "-c", KEEP]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let keeper = command.spawn().map_err(|error| Error::os("setpriv", error))?;
        let mut users = Self { keeper };
        users.wait_until_made()?;
        for file in ["uid_map", "gid_map"] {
            let path = format!("/proc/{}/{file}", users.keeper.id());
            let written = fs::write(&path, format!("0 0 {USERS}\n"));
            written.map_err(|error| Error::os(path, error))?;
        }
        Ok(users)
    }

    /// Returns the path by which a process joins the namespace.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/{}/ns/user", self.keeper.id()).into()
    }

    fn wait_until_made(&mut self) -> Result<(), Error> {
        let (mut line, mut why) = (String::new(), String::new());
        if let Some(said) = self.keeper.stdout.take() {
            let read = BufReader::new(said).read_line(&mut line);
            read.map_err(|error| Error::os("unshare", error))?;
        }
        if !line.is_empty() {
            return Ok(());
        }
        if let Some(mut said) = self.keeper.stderr.take() {
            // The message is for people; what cannot be read of it is left out.
            let _partial = said.read_to_string(&mut why);
        }
        Err(Error::Usage(format!(
            "csd os needs user namespaces, and this machine made none ({}): look at `sysctl \
             user.max_user_namespaces`",
            why.trim()
        )))
    }
}

impl Drop for Users {
    fn drop(&mut self) {
        // It may have ended already.
        let _gone = self.keeper.kill();
        let _status = self.keeper.wait();
    }
}

/// Returns the number of the user that makes the namespace. Identifiers are random: two of one
/// machine share it hardly ever, and then share these limits.
fn maker(id: &str) -> u32 {
    let mixed = id
        .bytes()
        .fold(0_u32, |mixed, byte| mixed.wrapping_mul(0x0100_0193).wrapping_add(byte.into()));
    MAKERS + mixed % MAKERS_COUNT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makers_have_unused_numbers() {
        let makers = ["csd-os-0a1b2c3d4e5f", "csd-os-0a1b2c3d4e60", ""].map(maker);
        assert!(makers[0] != makers[1]);
        // Up to 0x7FFD_FFFF they are unused; beyond that begin those of file systems of hosts.
        assert!(makers.iter().all(|maker| (0x7000_0000..0x7FFE_0000).contains(maker)));
    }

    #[test]
    fn a_namespace_has_every_user_under_its_own_number() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: a user namespace of another user needs root");
            return;
        }
        let users = Users::make("csd-os-0a1b2c3d4e5f").unwrap();
        let own = fs::read_link("/proc/self/ns/user").unwrap();
        assert_ne!(fs::read_link(users.path()).unwrap(), own);
        let map = fs::read_to_string(format!("/proc/{}/uid_map", users.keeper.id())).unwrap();
        assert_eq!(map.split_whitespace().collect::<Vec<_>>(), ["0", "0", "4294967295"]);
        let path = users.path();
        drop(users);
        assert!(!path.exists(), "its keeper has ended");
    }
}
