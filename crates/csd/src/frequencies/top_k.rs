//! `csd top-k`: the most frequent lines, words or fields, in the form of `uniq -c`.

use std::cmp::Reverse;

use serde_json::{Value, json};

use super::{Counted, Frequencies, count, shown};
use crate::cli::search::TopK;
use crate::context::Context;
use crate::report::{Failure, Report, print};
use crate::units::hex;

/// Width of the counts, as of `uniq -c`.
const WIDTH: usize = 7;

/// Shows the most frequent items of objects.
pub(crate) fn top_k(options: &TopK, context: &Context) -> Result<Report, Failure> {
    let counted = count(&options.names, &options.items, options.place, context)?;
    let Frequencies { mut counts, objects, failures, warnings } = counted;
    let distinct = counts.len();
    let total: u64 = counts.iter().map(|(_, count)| *count).sum();
    first(&mut counts, options.number);
    let text: String =
        counts.iter().map(|(item, count)| format!("{count:>WIDTH$} {}\n", shown(item))).collect();
    let items: Vec<Value> = counts.iter().map(described).collect();
    if let Some(failure) = failures.of(&options.names, &objects) {
        if !context.json {
            print(&text);
        }
        return Err(failure);
    }
    let result =
        json!({ "objects": objects, "items": items, "distinct": distinct, "total": total });
    Ok(Report::new(text, result).with_warnings(warnings))
}

/// Keeps the `number` most frequent items, in this order; equally frequent ones in that of their
/// bytes.
fn first(counts: &mut Vec<Counted>, number: usize) {
    let order = |a: &Counted, b: &Counted| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0));
    if number < counts.len() {
        counts.select_nth_unstable_by(number, order);
        counts.truncate(number);
    }
    counts.sort_unstable_by(order);
}

fn described((item, count): &Counted) -> Value {
    let text = String::from_utf8_lossy(item);
    match str::from_utf8(item) {
        Ok(_) => json!({ "item": text, "count": count }),
        Err(_) => json!({ "item": text, "hex": hex(item), "count": count }),
    }
}

#[test]
fn the_most_frequent_come_first_and_equal_ones_in_order() {
    let items = [("b", 2), ("a", 2), ("z", 9), ("c", 1), ("", 2)];
    let of = |number: usize| {
        let mut counts: Vec<Counted> =
            items.iter().map(|(item, count)| (item.as_bytes().into(), *count)).collect();
        first(&mut counts, number);
        counts.iter().map(|(item, _)| shown(item)).collect::<Vec<_>>()
    };
    assert_eq!(of(9), ["z", "", "a", "b", "c"]);
    for number in 0..=5 {
        assert_eq!(of(number), of(9)[..number]);
    }
}
