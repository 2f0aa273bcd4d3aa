//! `csd histogram`: how the numbers in lines, words or fields are distributed.

use serde_json::{Value, json};

use super::{Counted, Frequencies, count, shown};
use crate::cli::search::Histogram;
use crate::context::Context;
use crate::report::{Failure, Report};
use crate::table::{Align, Table};
use crate::units::{counted as numbered, grouped, percent};

/// Characters of the longest bar.
const BAR: u64 = 40;

/// Numbers between two bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bin {
    from: f64,
    to: f64,
    count: u64,
}

/// The distribution of numbers.
#[derive(Debug, Default, PartialEq)]
struct Distribution {
    bins: Vec<Bin>,
    numbers: u64,
    least: Option<f64>,
    greatest: Option<f64>,
    /// Numbers outside the bins.
    below: u64,
    above: u64,
    /// Items that are no finite number, and one of them.
    others: u64,
    other: Option<String>,
}

/// Shows how the numbers of objects are distributed.
pub(crate) fn histogram(options: &Histogram, context: &Context) -> Result<Report, Failure> {
    let (min, max) = (options.min, options.max);
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        return Err(Failure::usage(format!("--min {min} is greater than --max {max}")));
    }
    let counted = count(&options.names, &options.items, options.place, context)?;
    let Frequencies { counts, objects, failures, warnings } = counted;
    let distribution = distribution(counts, usize::from(options.bins), (min, max));
    if let Some(failure) = failures.of(&options.names, &objects) {
        return Err(failure);
    }
    let Distribution { bins, numbers, least, greatest, below, above, others, .. } = &distribution;
    let bins = bins.iter().map(|Bin { from, to, count }| json!([from, to, count]));
    let result = json!({
        "objects": objects,
        "bins": bins.collect::<Vec<Value>>(),
        "numbers": numbers,
        "least": least,
        "greatest": greatest,
        "below": below,
        "above": above,
        "others": others,
    });
    Ok(Report::new(text(&distribution), result).with_warnings(warnings))
}

/// Returns the distribution in bins of one width, from the least number or `min` to the greatest or
/// `max`; a number between two bins is in the upper one.
fn distribution(
    counts: Vec<Counted>,
    bins: usize,
    (min, max): (Option<f64>, Option<f64>),
) -> Distribution {
    let mut done = Distribution::default();
    let mut numbers: Vec<(f64, u64)> = Vec::with_capacity(counts.len());
    for (item, count) in counts {
        match number(&item) {
            Some(number) => numbers.push((number, count)),
            None => {
                done.others += count;
                // The same one whatever the order of the counts is.
                let item = shown(&item);
                done.other = Some(done.other.take().map_or(item.clone(), |least| least.min(item)));
            }
        }
    }
    numbers.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    done.numbers = numbers.iter().map(|(_, count)| count).sum();
    done.least = numbers.first().map(|(number, _)| *number);
    done.greatest = numbers.last().map(|(number, _)| *number);
    let (Some(least), Some(greatest)) = (min.or(done.least), max.or(done.greatest)) else {
        return done;
    };
    // With one bound given, all numbers may be beyond it.
    let greatest = greatest.max(least);
    let bins = if least < greatest { bins } else { 1 };
    done.bins = (0..bins)
        .map(|bin| Bin {
            from: bound(least, greatest, bin, bins),
            to: bound(least, greatest, bin + 1, bins),
            count: 0,
        })
        .collect();
    let mut at = 0;
    for (number, count) in numbers {
        if number < least {
            done.below += count;
        } else if number > greatest {
            done.above += count;
        } else {
            while at + 1 < bins && number >= done.bins[at].to {
                at += 1;
            }
            done.bins[at].count += count;
        }
    }
    done
}

/// Returns the number that an item is.
fn number(item: &[u8]) -> Option<f64> {
    let number: f64 = str::from_utf8(item).ok()?.trim().parse().ok()?;
    // Minus zero is zero.
    Some(number + 0.0).filter(|number| number.is_finite())
}

/// Returns the lower bound of a bin.
#[allow(clippy::cast_precision_loss)] // there are at most 65,535 bins
fn bound(least: f64, greatest: f64, bin: usize, bins: usize) -> f64 {
    if bin == bins {
        return greatest;
    }
    let part = bin as f64 / bins as f64;
    // The width of the whole may be more than the greatest number.
    least * (1.0 - part) + greatest * part
}

fn text(distribution: &Distribution) -> String {
    let Distribution { bins, numbers, below, above, others, other, .. } = distribution;
    let mut table = Table::new(&[
        ("from", Align::Right),
        ("to", Align::Right),
        ("count", Align::Right),
        ("share", Align::Right),
        ("", Align::Left),
    ]);
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(0).max(1);
    for Bin { from, to, count } in bins {
        // Of a bin with anything at least the shortest bar is seen.
        let bar = u128::from(*count) * u128::from(BAR);
        let bar = usize::try_from(bar.div_ceil(most.into())).unwrap_or(0);
        table.row(vec![
            short(*from),
            short(*to),
            grouped(*count),
            percent(*count, *numbers),
            "#".repeat(bar),
        ]);
    }
    let mut text = if bins.is_empty() { "no numbers\n".to_owned() } else { table.render() };
    for (count, what) in [(below, "below"), (above, "above")] {
        if *count > 0 {
            text += &format!("{} {what} these\n", numbered(*count, "number"));
        }
    }
    if let Some(other) = other {
        text += &format!("{} no number, such as {other:?}\n", are(*others));
    }
    text
}

fn are(count: u64) -> String {
    format!("{} {}", numbered(count, "item"), if count == 1 { "is" } else { "are" })
}

/// Returns a number with at most six digits.
fn short(number: f64) -> String {
    let rounded: f64 = format!("{number:.5e}").parse().unwrap_or(number);
    match rounded.abs() {
        0.0 => "0".to_owned(),
        1e-4..1e9 => rounded.to_string(),
        _ => format!("{rounded:e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(items: &[(&str, u64)]) -> Vec<Counted> {
        items.iter().map(|(item, count)| (item.as_bytes().into(), *count)).collect()
    }

    #[test]
    fn numbers_are_in_bins_of_one_width_and_the_others_are_counted() {
        let items = counts(&[
            ("0", 3),
            (" 2.5\r", 2),
            ("10", 1),
            ("x", 4),
            ("nan", 1),
            ("5", 1),
            ("-0", 1),
        ]);
        let done = distribution(items, 4, (None, None));
        let bin = |from, to, count| Bin { from, to, count };
        let bins = [bin(0.0, 2.5, 4), bin(2.5, 5.0, 2), bin(5.0, 7.5, 1), bin(7.5, 10.0, 1)];
        assert_eq!(done.bins, bins);
        assert_eq!((done.numbers, done.others, done.other.as_deref()), (8, 5, Some("nan")));
        assert!(text(&done).contains("5 items are no number, such as \"nan\""));
    }

    #[test]
    fn bounds_leave_numbers_out_and_one_number_is_one_bin() {
        let items = || counts(&[("1", 1), ("2", 1), ("3", 1), ("9", 2)]);
        let done = distribution(items(), 2, (Some(2.0), Some(3.0)));
        assert_eq!((done.below, done.above, done.numbers), (1, 2, 5));
        assert_eq!(done.bins.iter().map(|bin| bin.count).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(distribution(items(), 5, (Some(20.0), None)).below, 5);
        let one = distribution(counts(&[("7", 3)]), 5, (None, None));
        assert_eq!(one.bins, [Bin { from: 7.0, to: 7.0, count: 3 }]);
        let none = distribution(Vec::new(), 5, (None, None));
        assert_eq!(text(&none), "no numbers\n");
        let wide = distribution(counts(&[("-1.7e308", 1), ("1.7e308", 1)]), 2, (None, None));
        assert_eq!(wide.bins.iter().map(|bin| bin.count).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 2.5, -1234567.0, 1.0 / 3.0, 1e-7, 2e30].map(short);
        assert_eq!(texts, ["0", "2.5", "-1234570", "0.333333", "1e-7", "2e30"]);
    }
}
