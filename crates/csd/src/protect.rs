//! `csd protect`: parity for an object.

use std::sync::Arc;

use csd_store::array::Array;
use csd_store::object;

use crate::cli;
use crate::context::Context;
use crate::object::describe;
use crate::progress::Bar;
use crate::protection;
use crate::report::{Failure, Report};

/// Protects an object.
pub(crate) fn protect(options: cli::Protect, context: &Context) -> Result<Report, Failure> {
    let cli::Protect { name, scheme } = options;
    let bar = Bar::new(context, &name, None);
    let progress = Arc::clone(&bar.progress);
    let stored = context.with_array_to_write(async move |array: &Array| {
        Ok(object::protect(array, &name, scheme, &progress).await?)
    })?;
    drop(bar);
    let entry = stored.entry;
    let text = format!("{}: {}\n", entry.name, protection::in_words(&entry));
    Ok(Report::new(text, describe(&entry)).with_warnings(stored.warnings))
}
