//! The protection of an object, as text and JSON.

use csd_store::catalogue::Entry;
use serde_json::{Value, json};

use crate::report::Failure;
use crate::table::{Align, Table};
use crate::units::{counted, size};

/// Describes the protection of an object.
pub(crate) fn in_words(entry: &Entry) -> String {
    let Some((protection, parity)) = entry.protected() else { return "none".to_owned() };
    let (pieces, missing) = (parity.sums.len() as u64, missing(parity.missing.count()));
    format!("{}, {}, {missing}", protection.scheme, counted(pieces, "parity piece"))
}

/// Returns the number of missing pieces in words.
pub(crate) fn missing(pieces: u64) -> String {
    match pieces {
        0 => "no piece is missing".to_owned(),
        1 => "1 piece is missing".to_owned(),
        pieces => format!("{} are missing", counted(pieces, "piece")),
    }
}

/// Describes the protection of an object for JSON output; null if it has none.
pub(crate) fn describe(entry: &Entry) -> Value {
    let Some((protection, parity)) = entry.protected() else { return Value::Null };
    let parity_pieces = parity.sums.len();
    json!({
        "code": protection.scheme.to_string(),
        "stripes": parity_pieces / protection.scheme.parity(),
        "parity_pieces": parity_pieces,
        "missing": parity.missing.count(),
    })
}

/// Returns the pieces of a protected object as a table and as JSON; `names` are those of the
/// drives.
pub(crate) fn pieces(entry: &Entry, names: &[String]) -> Result<(String, Value), Failure> {
    let (Some((protection, parity)), Some(stripes)) = (entry.protected(), entry.stripes()) else {
        let why = "it has no pieces: `csd protect` gives it parity";
        return Err(Failure::usage(format!("object {:?} is not protected, {why}", entry.name)));
    };
    let (layout, data) = (entry.layout(), protection.scheme.data());
    let mut table = Table::new(&[
        ("stripe", Align::Right),
        ("piece", Align::Right),
        ("drive", Align::Left),
        ("bytes", Align::Right),
        ("crc32c", Align::Left),
        ("", Align::Left),
    ]);
    let mut pieces = Vec::new();
    for stripe in 0..stripes.count() {
        for piece in stripes.pieces(stripe) {
            let (bytes, crc32c) = match stripes.chunks(stripe).get(piece) {
                Some(chunk) => (layout.chunk_len(*chunk), entry.sum(*chunk)),
                None => {
                    let number = stripes.parity_number(stripe, piece - data);
                    (stripes.parity_bytes(stripe), parity.sums.get(number).copied())
                }
            };
            let index = stripes.drive(stripe, piece).expect("a piece of the stripe");
            let drive =
                names.get(usize::from(index)).cloned().unwrap_or_else(|| format!("#{index}"));
            let is_missing = parity.missing.has(protection.scheme, stripe, piece);
            table.row(vec![
                stripe.to_string(),
                piece.to_string(),
                drive.clone(),
                size(bytes.into()),
                crc32c.map_or_else(String::new, |sum| format!("{sum:08x}")),
                if is_missing { "missing".to_owned() } else { String::new() },
            ]);
            let mut described = json!({
                "stripe": stripe, "piece": piece, "drive": drive, "bytes": bytes, "crc32c": crc32c,
            });
            if is_missing {
                described["missing"] = true.into();
            }
            pieces.push(described);
        }
    }
    Ok((table.render(), pieces.into()))
}
