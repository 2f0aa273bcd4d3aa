//! `csd cat`: objects to standard output, one after another, as `csd get NAME -` writes each.

use std::io;

use csd_store::array::Array;
use csd_store::object::{self, Error, GetOptions, Got, Progress};
use serde_json::json;

use crate::cli::files::Cat;
use crate::context::Context;
use crate::get::form_of;
use crate::report::{Failure, Report};
use crate::tally::Tally;
use crate::target::cannot_write;

/// Outcome of one object: its warnings; `None` if the reader needs no more bytes.
type Written = Option<Vec<String>>;

/// Writes objects to standard output.
pub(crate) fn cat(options: Cat, context: &Context) -> Result<Report, Failure> {
    if context.json {
        let why = "--json and objects cannot both go to standard output: `csd get` writes files";
        return Err(Failure::usage(why));
    }
    let mut tally = Tally::new(context).of(options.names.len());
    let tally = context.with_array(async move |array: &Array| {
        for name in &options.names {
            match one(array, name, options.raw).await {
                Ok(Some(warnings)) => {
                    tally.done();
                    tally.warn(warnings);
                }
                Ok(None) => break,
                Err(failure) => tally.fail(name, failure),
            }
        }
        Ok(tally)
    })?;
    tally.finish(String::new(), json!({}))
}

async fn one(array: &Array, name: &str, raw: bool) -> Result<Written, Failure> {
    let entry = object::lookup(array, name).await?;
    let form = form_of(&entry, name, raw);
    let (options, sink) = (GetOptions::whole(form), Box::new(io::stdout()));
    match object::get(array, entry, options, sink, &Progress::none()).await {
        Ok(Got { warnings, .. }) => Ok(Some(warnings)),
        Err(Error::Write { source }) if source.kind() == io::ErrorKind::BrokenPipe => Ok(None),
        Err(Error::Write { source }) => Err(cannot_write("standard output", &source)),
        Err(error) => Err(error.into()),
    }
}
