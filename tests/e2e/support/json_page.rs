//! The page that describes what commands print with `--json`: fields and their types.

use std::collections::HashMap;
use std::fs;

use serde_json::Value;

use crate::support::harness::{Array, root};

/// Field, type.
type Fields = Vec<(String, String)>;

/// Tables of the page by heading; a command whose result is a shape has the shape's name.
pub(crate) struct Page {
    pub(crate) tables: HashMap<String, Fields>,
}

impl Page {
    pub(crate) fn read() -> Self {
        let text = fs::read_to_string(root("docs/reference/json.md")).unwrap();
        let mut tables: HashMap<String, Fields> = HashMap::new();
        for section in text.split("\n### ").skip(1) {
            let (heading, body) = section.split_once('\n').unwrap();
            let rows = body.lines().filter_map(|line| {
                let (field, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
                Some((field.to_owned(), rest.split(" | ").next()?.to_owned()))
            });
            let mut rows: Fields = rows.collect();
            if let Some((_, shape)) = body.split_once("The result is of shape `") {
                rows = vec![(String::new(), shape.split('`').next().unwrap().to_owned())];
            }
            tables.insert(heading.to_owned(), rows);
        }
        Self { tables }
    }

    /// Returns the commands that the page has.
    pub(crate) fn commands(&self) -> Vec<&str> {
        self.tables.keys().filter_map(|heading| heading.strip_prefix("csd ")).collect()
    }

    /// Returns all differences of `value` from this type.
    pub(crate) fn wrong(&self, at: &str, kind: &str, value: &Value) -> Vec<String> {
        if let Some(kind) = kind.strip_suffix(", or null") {
            return if value.is_null() { Vec::new() } else { self.wrong(at, kind, value) };
        }
        if let Some(of) = kind.strip_prefix("list of ") {
            let Value::Array(all) = value else { return vec![format!("{at} is no list")] };
            return all.iter().flat_map(|one| self.wrong(&format!("{at}[]"), of, one)).collect();
        }
        let right = match kind {
            "any" => true,
            "string" => value.is_string(),
            "number" => is_exact(value),
            "boolean" => value.is_boolean(),
            "string or null" => value.is_string() || value.is_null(),
            "number or null" => is_exact(value) || value.is_null(),
            shape => return self.wrong_fields(at, shape, value),
        };
        if right { Vec::new() } else { vec![format!("{at} is no {kind}: {value}")] }
    }

    fn wrong_fields(&self, at: &str, heading: &str, value: &Value) -> Vec<String> {
        let fields = self.tables.get(heading);
        let fields = fields.unwrap_or_else(|| panic!("the page has no {heading}"));
        if let [(name, shape)] = &fields[..]
            && name.is_empty()
        {
            return self.wrong_fields(at, shape, value);
        }
        let Value::Object(found) = value else { return vec![format!("{at} has no fields")] };
        let mut wrong = Vec::new();
        for (field, kind) in fields {
            match (found.get(field.trim_end_matches('?')), field.ends_with('?')) {
                (Some(value), _) => wrong.extend(self.wrong(&format!("{at}.{field}"), kind, value)),
                (None, true) => {}
                (None, false) => wrong.push(format!("{at}.{field} is missing")),
            }
        }
        let known =
            |name: &String| fields.iter().any(|(field, _)| field.trim_end_matches('?') == name);
        let others = found.keys().filter(|name| !known(name));
        wrong.extend(others.map(|name| format!("{at}.{name} is not on the page")));
        wrong
    }
}

/// Returns true for a number that readers with 53 bits, such as JavaScript's, get as it is.
fn is_exact(value: &Value) -> bool {
    const END: u64 = 1 << 53;
    match (value.as_u64(), value.as_i64()) {
        (None, None) => value.is_number(),
        (whole, negative) => whole.or(negative.map(i64::unsigned_abs)).is_some_and(|n| n < END),
    }
}

/// Runs a command with `--json`; asserts its exit code and the documented fields, and returns the
/// result.
#[track_caller]
pub(crate) fn documented(array: &Array, command: &str, more: &[&str], code: i32) -> Value {
    let words: Vec<&str> = command.split(' ').chain(["--json"]).collect();
    let done = array.csd(&[&words[..], more].concat()).expect(code, &[]);
    let result = done.json()["result"].clone();
    let wrong = Page::read().wrong(command, &format!("csd {command}"), &result);
    assert!(wrong.is_empty(), "{wrong:#?}");
    result
}
