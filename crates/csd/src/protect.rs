//! `csd protect`: parity for an object.

use csd_store::array::Array;
use csd_store::object::{self, Account, Encode, Moved};
use serde_json::{Value, json};

use crate::cli;
use crate::context::Context;
use crate::object::describe;
use crate::progress::Bar;
use crate::protection;
use crate::report::{Failure, Report};
use crate::table::{Align, Table};
use crate::units::{duration, size};

/// Protects an object.
pub(crate) fn protect(options: cli::Protect, context: &Context) -> Result<Report, Failure> {
    let cli::Protect { name, scheme, encode, link_rate } = options;
    let encode = Encode::from(encode);
    let bar = Bar::new(context, &name, None);
    let progress = bar.progress.clone();
    let protected = context.with_array_to_write(async move |array: &Array| {
        Ok(object::protect(array, &name, scheme, encode, &progress).await?)
    })?;
    drop(bar);
    let entry = protected.stored.entry;
    let mut text = format!("{}: {}\n", entry.name, protection::in_words(&entry));
    let mut result = describe(&entry);
    if let Some(account) = &protected.account {
        if encode == Encode::Auto {
            text.push_str(&table(account, link_rate));
        }
        if account.by == Encode::Drives {
            let crossed = size(account.host_crossed_bytes);
            text.push_str(&format!("encoded in drives; {crossed} crossed to or from this host\n"));
        }
        result["encode"] = account_json(account, link_rate);
        result["host_crossed_bytes"] = account.host_crossed_bytes.into();
    }
    Ok(Report::new(text, result).with_warnings(protected.stored.warnings))
}

fn word(way: Encode) -> &'static str {
    match way {
        Encode::Host => "host",
        Encode::Drives => "drives",
        Encode::Auto => "auto",
    }
}

/// Returns the bytes and times of both ways as a table.
fn table(account: &Account, link_rate: u64) -> String {
    let mut table = Table::new(&[
        ("encode", Align::Left),
        ("host's link", Align::Right),
        ("drives' links", Align::Right),
        ("busiest drive", Align::Right),
        ("modelled", Align::Right),
        ("", Align::Left),
    ]);
    let model = &account.model;
    for (way, moved) in [(Encode::Host, &model.host), (Encode::Drives, &model.in_drives)] {
        table.row(vec![
            word(way).to_owned(),
            size(moved.host),
            size(moved.drives),
            size(moved.busiest),
            duration(moved.time(link_rate).as_secs_f64()),
            if way == account.by { "taken".to_owned() } else { String::new() },
        ]);
    }
    table.render()
}

fn account_json(account: &Account, link_rate: u64) -> Value {
    let moved = |moved: &Moved| {
        json!({
            "host_link_bytes": moved.host,
            "drive_links_bytes": moved.drives,
            "busiest_drive_bytes": moved.busiest,
            "model_s": moved.time(link_rate).as_secs_f64(),
        })
    };
    json!({
        "by": word(account.by),
        "stripes_on_host": account.stripes_here,
        "link_bytes_per_s": link_rate,
        "host": moved(&account.model.host),
        "drives": moved(&account.model.in_drives),
    })
}
