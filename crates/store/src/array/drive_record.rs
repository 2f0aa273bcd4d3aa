//! [`DriveRecord`]: a drive in the array file, with the options that it is started with.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::DriveIndex;

/// Value of [`DriveRecord::media`] for a drive that keeps its bytes in memory.
pub const IN_MEMORY: &str = "memory";

/// A drive of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveRecord {
    /// Name, unique within the array; messages use it.
    pub name: String,
    /// Address: `nvme+tcp://host:port/NQN`.
    pub url: String,
    /// Place in the array, if it is not that in the list, because another drive has been removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<DriveIndex>,
    /// `memory`, or the path of the media file, for drives that `csd array up` started. Relative to
    /// the same folder as [`ArrayFile::folder`](super::ArrayFile::folder).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media: Option<String>,
    /// Identifier in the superblock of the media file: 32 hexadecimal digits. `None` until the
    /// drive has served, and in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_uuid: Option<String>,
    /// Size of the media, bytes, for drives that `csd array up` started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Number of cores, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<usize>,
    /// Process ID, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Options of `csd drive serve` with which the drive is started, by their long names, likewise.
    #[serde(default, skip_serializing_if = "DriveOptions::is_empty")]
    pub options: DriveOptions,
}

impl DriveRecord {
    /// Returns the NQN in the address; empty when there is none.
    #[must_use]
    pub fn nqn(&self) -> &str {
        let path = self.url.rsplit('/').next().unwrap_or("");
        path.split('?').next().unwrap_or("")
    }

    /// Returns true if the drive is a process of this machine that keeps its bytes in memory.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.media.as_deref() == Some(IN_MEMORY)
    }

    /// Returns true if the drive has never served: `csd array up` wrote its address, and its port
    /// is not known yet.
    #[must_use]
    pub fn is_unborn(&self) -> bool {
        self.media_uuid.is_none() && self.url.contains(":0/")
    }
}

/// Options of a drive by their long names, without dashes.
pub type DriveOptions = BTreeMap<String, Words>;

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Words {
    /// An option without a value: present if true.
    Flag(bool),
    /// A whole number.
    Number(u64),
    /// Any other value, as on the command line.
    One(String),
    /// Values of an option that may be repeated.
    Many(Vec<String>),
}

impl Words {
    /// Returns the command-line arguments that set the option `name` to this value.
    #[must_use]
    pub fn arguments(&self, name: &str) -> Vec<String> {
        match self {
            Self::Flag(false) => Vec::new(),
            Self::Flag(true) => vec![format!("--{name}")],
            // With `=`, since a value may begin with a dash.
            Self::Number(number) => vec![format!("--{name}={number}")],
            Self::One(word) => vec![format!("--{name}={word}")],
            Self::Many(words) => words.iter().map(|word| format!("--{name}={word}")).collect(),
        }
    }
}
