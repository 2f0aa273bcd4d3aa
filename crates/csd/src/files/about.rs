//! [`About`]: the description of an object in the comment of its tar member, as JSON.

use csd_store::ElementType;
use csd_store::catalogue::Entry;
use csd_store::layout::{Parts, Scheme};
use csd_store::object::{Arrange, On, PAGE_BYTES, PutOptions};
use serde_json::{Value, json};

use crate::object::{layout, placement};
use crate::units::hex;

/// Key whose value is the version of the description.
const KEY: &str = "csdstore";
const VERSION: u64 = 1;

/// Description of an object.
#[derive(Clone, Debug)]
pub(super) struct About {
    pub(super) name: String,
    pub(super) element: ElementType,
    pub(super) shape: Vec<u64>,
    /// Size of the content, without a header.
    pub(super) bytes: u64,
    /// BLAKE3 of the content, as hexadecimal digits, if it is known.
    pub(super) blake3: Option<String>,
    stored_unix_ms: Option<u64>,
    on: On,
    chunk_bytes: u64,
    arrange: Arrange,
    protect: Option<Scheme>,
}

/// Describes an object.
pub(super) fn comment(entry: &Entry) -> String {
    let mut about = json!({
        KEY: VERSION,
        "name": entry.name,
        "type": entry.element.name(),
        "shape": entry.shape,
        "bytes": entry.bytes,
        "blake3": entry.has_digest().then(|| hex(&entry.digest)),
        "stored_unix_ms": (entry.stored_unix_ms > 0).then_some(entry.stored_unix_ms),
        "on": placement(entry),
        "chunk_bytes": entry.chunk_bytes,
        "layout": layout(entry),
        "protect": entry.protected().map(|(protection, _)| protection.scheme.to_string()),
    });
    if let Some(parts) = entry.parts.as_ref().filter(|_| matches!(layout(entry), "graph" | "table"))
    {
        about["starts"] = starts(parts);
    }
    about.to_string()
}

/// Returns first byte and mark of each part.
fn starts(parts: &Parts) -> Value {
    let mut at = 0;
    let starts = parts.parts().iter().map(|part| {
        let start = json!([at, part.mark]);
        at += part.bytes;
        start
    });
    starts.collect::<Vec<_>>().into()
}

/// Reads a description; `None` if it is none of this version.
pub(super) fn parse(comment: &str) -> Option<About> {
    let about: Value = serde_json::from_str(comment).ok()?;
    if about[KEY].as_u64() != Some(VERSION) {
        return None;
    }
    let text = |field: &str| about[field].as_str();
    let shape = about["shape"].as_array()?.iter().map(Value::as_u64).collect::<Option<_>>()?;
    let protect = match text("protect") {
        Some(scheme) => Some(scheme.parse().ok()?),
        None => None,
    };
    let pair = |start: &Value| Some((start[0].as_u64()?, start[1].as_u64()?));
    Some(About {
        name: text("name")?.to_owned(),
        element: text("type")?.parse().ok()?,
        shape,
        bytes: about["bytes"].as_u64()?,
        blake3: text("blake3").map(str::to_owned),
        stored_unix_ms: about["stored_unix_ms"].as_u64().filter(|stored| *stored > 0),
        on: if text("on")? == "block" { On::Block } else { On::Kv },
        chunk_bytes: about["chunk_bytes"].as_u64()?,
        arrange: match text("layout")? {
            "spread" => Arrange::Spread,
            "whole" => Arrange::Whole,
            "range" => Arrange::Range,
            "rows" => Arrange::Rows,
            layout @ ("graph" | "table") => {
                let starts = about["starts"].as_array()?;
                let starts = starts.iter().map(pair).collect::<Option<_>>()?;
                match layout {
                    "graph" => Arrange::Graph { starts },
                    _ => Arrange::Table { starts },
                }
            }
            _ => return None,
        },
        protect,
    })
}

/// Returns the options to store a member: as it is described, or as any other file.
pub(super) fn put_options(name: String, about: Option<&About>) -> PutOptions {
    let plain = PutOptions { page_bytes: Some(PAGE_BYTES), ..PutOptions::new(name) };
    let Some(about) = about else { return plain };
    PutOptions {
        on: about.on,
        chunk_bytes: Some(about.chunk_bytes),
        arrange: about.arrange.clone(),
        protect: about.protect,
        stored_unix_ms: about.stored_unix_ms,
        ..plain
    }
}
