//! [`Fs`]: kinds of file systems in a drive's block namespace.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Label of the file systems that this program makes.
pub const LABEL: &str = "csd-os";

/// File system of `/data`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fs {
    /// Of the drive's operating system alone.
    #[default]
    Ext4,
    /// Hosts may mount it at the same time.
    Ocfs2,
}

impl fmt::Display for Fs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ext4 => "ext4",
            Self::Ocfs2 => "ocfs2",
        })
    }
}

impl FromStr for Fs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ext4" => Ok(Self::Ext4),
            "ocfs2" => Ok(Self::Ocfs2),
            _ => Err("say ext4 or ocfs2".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_have_names() {
        for fs in [Fs::Ext4, Fs::Ocfs2] {
            assert_eq!(fs.to_string().parse(), Ok(fs));
        }
        assert!("xfs".parse::<Fs>().is_err());
    }
}
