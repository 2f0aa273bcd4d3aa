//! Programs of this machine that this crate runs, and what they need.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;

/// Programs, and their Debian packages.
const TOOLS: [(&str, &str); 5] = [
    ("runc", "runc"),
    ("losetup", "mount"),
    ("mke2fs", "e2fsprogs"),
    ("setpriv", "util-linux"),
    ("unshare", "util-linux"),
];
/// Folders that a user's PATH may lack.
const FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Checks that operating systems can run here.
///
/// # Errors
/// [`Error::Usage`] that names what is missing.
pub fn check() -> Result<(), Error> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::Usage("csd os needs root: it mounts file systems".to_owned()));
    }
    for (tool, package) in TOOLS {
        if find(tool).is_none() {
            return Err(Error::Usage(format!(
                "csd os needs {tool}, which is not here (Debian: apt-get install {package})"
            )));
        }
    }
    Ok(())
}

/// Returns true if this machine has a program.
#[must_use]
pub fn has(tool: &str) -> bool {
    find(tool).is_some()
}

/// Returns the path of a program.
fn find(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join(tool)).find(|path| path.is_file())
}

/// Returns a command of a program of this machine.
#[must_use]
pub fn command(tool: &str) -> Command {
    Command::new(find(tool).unwrap_or_else(|| Path::new(tool).to_owned()))
}

/// Runs a program, and returns its output.
///
/// # Errors
/// Its last words, if it fails.
pub fn run(tool: &str, arguments: &[&str]) -> Result<String, Error> {
    let done = command(tool).args(arguments).stdin(Stdio::null()).output();
    let done = done.map_err(|error| Error::os(tool, error))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let line = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it failed");
    Err(Error::Failed(format!("{tool}: {line}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_and_their_last_words_kept() {
        assert_eq!(run("sh", &["-c", "echo a"]).unwrap(), "a\n");
        let failed = run("sh", &["-c", "echo one >&2; echo two >&2; exit 3"]).unwrap_err();
        assert_eq!(failed.to_string(), "sh: two");
        assert!(run("no-such-program", &[]).unwrap_err().to_string().contains("no-such-program"));
    }
}
