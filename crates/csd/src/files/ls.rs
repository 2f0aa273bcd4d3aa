//! `csd ls`: objects by name, size or date, as a table, a long table or a tree.

use std::cmp::Reverse;

use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::object;
use serde_json::{Value, json};

use super::listing::{nothing, under};
use super::tree;
use crate::cli;
use crate::cli::files::Sort;
use crate::context::Context;
use crate::object::{describe, layout, placement, shape, stored};
use crate::report::{Failure, Report};
use crate::table::{Align, Table};
use crate::units::{counted, exact_size, grouped, hex, size};

/// Hexadecimal digits of a digest in the long table; the others are in `csd stat`.
const DIGEST_DIGITS: usize = 16;

/// An object, and its state in words.
type Row = (Entry, &'static str);

/// Lists objects.
pub(crate) fn ls(options: &cli::Ls, context: &Context) -> Result<Report, Failure> {
    let prefix = options.prefix.as_deref().unwrap_or("");
    let (all, of) = (options.all, prefix.to_owned());
    let (mut rows, warnings) = context.with_array(async move |array: &Array| {
        let rows = if all { with_staged(array, &of).await? } else { sealed(array, &of).await? };
        Ok((rows, array.down()))
    })?;
    match options.order.sort {
        Sort::Name => {}
        Sort::Size => rows.sort_by_key(|(entry, _)| Reverse(entry.bytes)),
        Sort::Date => rows.sort_by_key(|(entry, _)| Reverse(entry.stored_unix_ms)),
    }
    if options.order.reverse {
        rows.reverse();
    }
    let text = match (rows.is_empty(), options.order.tree, options.order.long) {
        (true, ..) => nothing(prefix),
        (false, true, _) => tree::render(&rows, prefix) + &total(&rows),
        (false, false, true) => long(&rows) + &total(&rows),
        (false, false, false) => short(&rows),
    };
    let result = context.for_json(|| result(&rows));
    Ok(Report::new(text, result).with_warnings(warnings))
}

fn result(rows: &[Row]) -> Value {
    let object = |(entry, state): &Row| {
        let mut object = describe(entry);
        object["state"] = (*state).into();
        object
    };
    let bytes: u64 = rows.iter().map(|(entry, _)| entry.bytes).sum();
    json!({ "objects": rows.iter().map(object).collect::<Vec<_>>(), "bytes": bytes })
}

/// Returns the objects whose names begin with `prefix`.
async fn sealed(array: &Array, prefix: &str) -> Result<Vec<Row>, Failure> {
    let entries = under(array, prefix).await?.into_iter();
    Ok(entries.map(|entry| (entry, "sealed")).collect())
}

/// Returns the same, and puts that are running or were interrupted: no drive lists those by name.
async fn with_staged(array: &Array, prefix: &str) -> Result<Vec<Row>, Failure> {
    let mut listed = object::list(array).await?;
    listed.staged.retain(|entry| entry.name.starts_with(prefix));
    for entry in &mut listed.staged {
        // Its size is not known before its end.
        entry.bytes = object::space_taken(array, entry).await?;
    }
    let staged = listed.staged.into_iter().map(|entry| (entry, "staged"));
    let sealed = listed.sealed.into_iter().map(|entry| (entry, "sealed"));
    let mut rows: Vec<Row> = sealed.chain(staged).collect();
    rows.retain(|(entry, _)| entry.name.starts_with(prefix));
    Ok(rows)
}

fn short(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        ("name", Align::Left),
        ("type", Align::Left),
        ("shape", Align::Left),
        ("size", Align::Right),
        ("on", Align::Left),
        ("state", Align::Left),
    ]);
    for (entry, state) in rows {
        table.row(vec![
            entry.name.clone(),
            entry.element.to_string(),
            shape(&entry.shape),
            size(entry.bytes),
            placement(entry).to_owned(),
            (*state).to_owned(),
        ]);
    }
    table.render()
}

fn long(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        ("stored (UTC)", Align::Left),
        ("bytes", Align::Right),
        ("type", Align::Left),
        ("shape", Align::Left),
        ("on", Align::Left),
        ("layout", Align::Left),
        ("drives", Align::Right),
        ("code", Align::Left),
        ("blake3", Align::Left),
        ("state", Align::Left),
        ("name", Align::Left),
    ]);
    for (entry, state) in rows {
        let code = entry.protected().map(|(protection, _)| protection.scheme.to_string());
        let digest = entry.has_digest().then(|| hex(&entry.digest));
        table.row(vec![
            stored(entry).map_or_else(|| "-".to_owned(), |stored| to_minutes(&stored)),
            grouped(entry.bytes),
            entry.element.to_string(),
            shape(&entry.shape),
            placement(entry).to_owned(),
            layout(entry).to_owned(),
            entry.members.len().to_string(),
            code.unwrap_or_else(|| "-".to_owned()),
            digest.map_or_else(|| "-".to_owned(), |digest| digest[..DIGEST_DIGITS].to_owned()),
            (*state).to_owned(),
            entry.name.clone(),
        ]);
    }
    table.render()
}

/// Returns a time as `2026-11-21 07:00`.
fn to_minutes(stored: &str) -> String {
    stored.chars().take(16).collect::<String>().replace('T', " ")
}

fn total(rows: &[Row]) -> String {
    let bytes = rows.iter().map(|(entry, _)| entry.bytes).sum();
    format!("{}, {}\n", counted(rows.len() as u64, "object"), exact_size(bytes))
}
