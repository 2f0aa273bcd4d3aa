//! [`options_like`]: the options of a put whose object is as another one is.

use csd_store::catalogue::Entry;
use csd_store::layout::{Kind, Parts};
use csd_store::object::{Arrange, PAGE_BYTES, PutOptions};

use crate::report::Failure;

/// Returns options to store an object with the name, placement, chunks, layout and code of `entry`.
///
/// # Errors
/// Usage: it is a graph, which is made of a list of edges.
pub(crate) fn options_like(entry: &Entry) -> Result<PutOptions, Failure> {
    let arrange = match entry.parts.as_ref().map(Parts::kind) {
        None if entry.whole => Arrange::Whole,
        // The caller knows the groups of the new content's rows.
        None | Some(Kind::Table) => Arrange::Spread,
        Some(Kind::Range) => Arrange::Range,
        Some(Kind::Rows) => Arrange::Rows,
        Some(Kind::Graph) => {
            let why = "is a graph: remove it, and `csd put --graph` stores its list of edges";
            return Err(Failure::usage(format!("object {:?} {why}", entry.name)));
        }
    };
    Ok(PutOptions {
        on: entry.placement.on(),
        chunk_bytes: Some(entry.chunk_bytes.into()),
        arrange,
        protect: entry.protected().map(|(protection, _)| protection.scheme),
        page_bytes: Some(PAGE_BYTES),
        ..PutOptions::new(entry.name.clone())
    })
}
