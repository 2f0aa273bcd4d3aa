//! Key-value namespaces of NVMe/TCP drives, for programs of any kind.
//!
//! [`Client`] is a connection that any thread may use, by blocking calls or callbacks; [`Session`]
//! is the same for tasks on a core of the reactor. Both speak the standard Key Value command set,
//! so the drive may be of any maker. On top of single values they store *long objects*: pieces
//! under keys of their own, published by a manifest. [`Volume`] is a block namespace as bytes.
//!
//! ```no_run
//! use csd_client::{Client, Settings};
//!
//! let url = "nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.csdstore:drive?nsid=2";
//! let client = Client::connect(url, &Settings::from_environment()?)?;
//! client.put(b"greeting", b"hello")?;
//! assert_eq!(client.get(b"greeting")?.as_deref(), Some(&b"hello"[..]));
//! # Ok::<(), csd_client::Error>(())
//! ```
//!
//! This crate has no protocol, clock or thread of its own, and no `unsafe`. Invariants: a call
//! ends, with an answer or an error; a command whose connection was lost is sent again only as its
//! method says; a reader of a long object gets all bytes of one version, or an error.
//!
//! Modules, from settings to threads:
//! - `host`, `secrets`, `settings`: this host's name, its secrets, how it connects
//! - `error`: errors
//! - `session`: one namespace on a core, reconnected when its connection is lost
//! - `long`: objects longer than one value
//! - `ordered`: futures that run together; `pages`: the position of a listing
//! - `operation`: single commands as values, and batches of them
//! - `client`: the connection for threads
//! - `tunnel`: one end of a drive's tunnel
//! - `volume`: a block namespace as bytes, reconnected when its connection is lost

mod client;
mod error;
mod host;
mod long;
mod operation;
mod ordered;
mod pages;
mod secrets;
mod session;
mod settings;
mod tunnel;
mod volume;

pub use client::{Client, Keys};
pub use error::{Error, SettingsError};
pub use host::{machine_nqn, parse_nqn};
pub use long::{MANIFEST_BYTES, Manifest, Object, PIECE_MARK, Put, Within, is_piece, unchanged};
pub use operation::{Operation, Outcome};
pub use secrets::load_secrets;
pub use session::{Info, Session};
pub use settings::Settings;
pub use tunnel::{Gate, Packets, TunnelCounts, TunnelEnd, TunnelError, TunnelLog, TunnelPort};
pub use volume::{Retry, Volume, VolumeError};

pub use csd_initiator::{Address, Options, Secrets};
pub use csd_nvme::kv::{Key, RETRIEVE_RAW, STORE_IF_ABSENT, STORE_IF_EXISTS, STORE_NO_COMPRESSION};
pub use csd_nvme::status::Status;
pub use csd_reactor::{Buffer, Completions, Unanswered, interruptible};

/// The page of the guide, whose Rust code is compiled with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/key-value.md")]
struct Guide;
