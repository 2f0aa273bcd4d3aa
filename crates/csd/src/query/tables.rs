//! Finds the objects that a query names, and reads their footers.

use std::sync::Arc;

use csd_query::host::TableName;
use csd_query::table::{File, TAIL_BYTES, Table, tail_bytes};
use csd_store::array::{Array, Plan};
use csd_store::catalogue::Entry;
use csd_store::in_flight::{in_flight, share};
use csd_store::object;

use crate::context::{Context, with_plan};
use crate::report::Failure;

/// A table that a query names, and what it is.
pub(super) type Named = (TableName, Arc<Table>);

/// Opens the tables of a query.
///
/// # Errors
/// Usage: there is no such object, or it is no table.
pub(super) fn open(
    (context, plan): (&Context, &Plan),
    names: &[TableName],
) -> Result<Vec<Named>, Failure> {
    let names = names.to_vec();
    with_plan(plan, context.options()?, async move |array: &Array| {
        let mut tables = Vec::new();
        for name in names {
            let entries = entries(array, &name).await?;
            let files = files(array, entries).await?;
            let table = Table::new(&name.objects, files).map_err(Failure::usage)?;
            tables.push((name, Arc::new(table)));
        }
        Ok(tables)
    })
}

/// Returns the objects that a name stands for, in the order of their names.
async fn entries(array: &Array, name: &TableName) -> Result<Vec<Entry>, Failure> {
    if !name.is_pattern {
        return Ok(vec![object::lookup(array, &name.objects).await?]);
    }
    let fixed = name.objects.split(['*', '?', '[']).next().unwrap_or_default();
    if fixed == name.objects {
        return Ok(vec![object::lookup(array, &name.objects).await?]);
    }
    let pattern = glob::Pattern::new(&name.objects);
    let pattern =
        pattern.map_err(|error| Failure::usage(format!("{:?}: {error}", name.objects)))?;
    let (mut listed, damaged) = object::list_under(array, fixed).await?;
    if damaged > 0 {
        let why = "names are damaged, which may belong to the table: `csd repair` mends names";
        return Err(Failure::run(format!("{:?}: {damaged} {why}", name.objects)));
    }
    // A star stands for a part of a name within one folder, as in a shell.
    let within = glob::MatchOptions { require_literal_separator: true, ..Default::default() };
    listed.retain(|entry| pattern.matches_with(&entry.name, within));
    Ok(listed)
}

/// Reads the footers of objects, several at once.
async fn files(array: &Array, entries: Vec<Entry>) -> Result<Vec<File>, Failure> {
    let mut open = entries.into_iter().enumerate();
    let mut files = Vec::new();
    let mut failed = None;
    in_flight(
        || {
            let (number, entry) = open.next()?;
            Some((share(TAIL_BYTES), async move { (number, file(array, entry).await) }))
        },
        |(number, file)| match file {
            Ok(file) => files.push((number, file)),
            Err(failure) => failed = failed.take().or(Some(failure)),
        },
    )
    .await;
    if let Some(failure) = failed {
        return Err(failure);
    }
    files.sort_by_key(|(number, _)| *number);
    Ok(files.into_iter().map(|(_, file)| file).collect())
}

/// Reads the footer of an object.
///
/// # Errors
/// Usage: it is no Parquet file.
pub(crate) async fn file(array: &Array, entry: Entry) -> Result<File, Failure> {
    let start = entry.bytes.saturating_sub(TAIL_BYTES);
    let mut tail = object::read(array, &entry, start..entry.bytes).await?;
    let whole = tail_bytes(&entry, &tail).map_err(Failure::usage)?;
    if whole.start < start {
        tail = object::read(array, &entry, whole).await?;
    }
    File::new(entry, tail).map_err(Failure::usage)
}
