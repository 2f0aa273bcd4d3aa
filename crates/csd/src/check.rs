//! `csd drive check`: checks the checksums of everything on a medium.
//!
//! Writes nothing to the medium. Invariant: damage means exit code 1, and every damage is reported
//! with its location.

use csd_kvlog::check::{self, Report as Found, ShardReport};
use csd_kvlog::media::{FileMedia, Media};
use csd_reactor::block_on;
use serde_json::{Value, json};

use crate::cli::Check;
use crate::report::{Failure, Report};
use crate::runtime::runtime;
use crate::table::{Align, Table};
use crate::units::{grouped, size};

/// Checks a medium that no drive serves.
pub(crate) fn check(options: &Check) -> Result<Report, Failure> {
    let path = options.media.clone();
    let found = block_on(&runtime(), move || async move {
        let media = Media::File(FileMedia::open_read_only(&path).await?);
        check::check(&media).await
    });
    let found = found.map_err(Failure::run)?.map_err(Failure::run)?;
    let detail = object(&found);
    if found.damage.is_empty() {
        return Ok(Report::new(text(&found), detail));
    }
    let count = found.damage.len();
    let lines: String = found.damage.iter().map(|line| format!("\n  {line}")).collect();
    let media = options.media.display();
    let message = format!("{media} is damaged in {count} places:{lines}");
    Err(Failure { detail, ..Failure::run(message) })
}

fn object(found: &Found) -> Value {
    let shard = |shard: &ShardReport| {
        json!({
            "shard": shard.shard,
            "segments": shard.segments,
            "records": shard.records,
            "keys": shard.keys,
            "value_bytes": shard.value_bytes,
            "damage": shard.damage,
        })
    };
    json!({
        "version": found.superblock.version(),
        "bytes": found.superblock.bytes(),
        "block_bytes": found.superblock.block_length(),
        "kv_bytes": found.superblock.kv_length(),
        "segments": found.segments,
        "segments_free": found.segments_free,
        "shards": found.shards.iter().map(shard).collect::<Vec<_>>(),
        "damage": found.damage,
    })
}

fn text(found: &Found) -> String {
    let columns = ["shard", "segments", "records", "keys", "bytes"];
    let mut table = Table::new(&columns.map(|name| (name, Align::Right)));
    for shard in &found.shards {
        table.row(vec![
            shard.shard.to_string(),
            shard.segments.to_string(),
            grouped(shard.records),
            grouped(shard.keys),
            grouped(shard.value_bytes),
        ]);
    }
    let block = &found.superblock;
    format!(
        "no damage; format version {}, {} in all: {} of blocks, {} of values in {} segments, {} \
         of them free\n{}",
        block.version(),
        size(block.bytes()),
        size(block.block_length()),
        size(block.kv_length()),
        found.segments,
        found.segments_free,
        table.render()
    )
}
