//! Output of commands with `--json`, compared with the page that describes it.
//!
//! The page is the schema: the test reads its tables. Every field of a real output must be in them
//! with its type, and every field in them must be in the output.

use std::collections::HashMap;
use std::fs;

use serde_json::Value;

use crate::harness::{Array, root, small_i32};

/// Field, type.
type Fields = Vec<(String, String)>;

/// Tables of the page by heading; a command whose result is a shape has the shape's name.
pub(crate) struct Page {
    tables: HashMap<String, Fields>,
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

    fn commands(&self) -> Vec<&str> {
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
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "string or null" => value.is_string() || value.is_null(),
            "number or string" => value.is_number() || value.is_string(),
            "number, string or null" => value.is_number() || value.is_string() || value.is_null(),
            "number or null" => value.is_number() || value.is_null(),
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

#[test]
fn json_of_every_command_is_as_the_page_says() {
    let page = Page::read();
    let array = Array::up(2, "256M");
    let (bytes, _) = small_i32(51, 100_000);
    array.file("x.bin", &bytes);
    let sorted: Vec<u8> = (0..1000i32).flat_map(i32::to_le_bytes).collect();
    array.file("s.bin", &sorted);
    array.file("links", b"0 1\n1 2\n2 0\n3 0\n");
    let url = array.drives()[0]["url"].as_str().unwrap().to_owned();
    let grep = root("sdk/built/rust-grep.wasm").display().to_string();
    // Tests of their own run these.
    let own = "drive serve;bench block;bench kv;bench verify;bench ec;scrub;kv range;attach;\
               tunnel up;os up;os status;os down;array add;array replace";
    let mut seen: Vec<String> = own.split(';').map(str::to_owned).collect();
    let mut run = |line: &str| {
        let line = line.replace("URL", &url).replace("GREP", &grep);
        let words: Vec<&str> = line.split(' ').chain(["--json"]).collect();
        let said = array.csd(&words).expect(0, &[]).json();
        assert_eq!(said["schema"], 1);
        assert!(said["warnings"].is_array(), "{said}");
        let command = said["command"].as_str().unwrap();
        let wrong = page.wrong(command, &format!("csd {command}"), &said["result"]);
        assert!(wrong.is_empty(), "csd {line}: {wrong:#?}\n{said}");
        seen.push(command.to_owned());
    };
    for line in "put x.bin x --type i32;put x.bin y --type i32 --align x;\
        put x.bin b --type i32 --on block;put s.bin s --type i32 --layout range;\
        put s.bin t --type i32 --align s;put links g --graph;put links lines;\
        put x.bin p --type i32 --protect rs:1+1;protect y rs:1+1 --encode auto;stat p --pieces;\
        ls --all;stat x;stat b;get x back;\
        run count x --equal 7 --on all;run vector-add x y -o sum --check;\
        run array-merge s t -o merged;run page-rank g --on all;run page-rank g -o ranks;\
        run verify x;run verify x -o sums;run summarize x;rm y;array status;\
        array reclaim;array rebuild d0;array rebalance;repair;\
        array up;\
        drive log;drive status;\
        program load GREP --drive URL --host-nqn nqn.2026-11.io.csdstore:host;\
        program activate 16 --drive URL --host-nqn nqn.2026-11.io.csdstore:host;\
        program list --drive URL --host-nqn nqn.2026-11.io.csdstore:host;\
        program run 16 --input links --output hits --parameter text:1 --drive URL \
        --host-nqn nqn.2026-11.io.csdstore:host;\
        program run GREP --object lines --parameter text:1 --store found --on all;\
        program deactivate 16 --drive URL --host-nqn nqn.2026-11.io.csdstore:host;\
        program unload 16 --drive URL --host-nqn nqn.2026-11.io.csdstore:host;\
        kv put x.bin k --drive d0;kv get k kept --drive d0;kv exists k --drive URL;\
        kv ls --drive d0;kv gc --drive d0;kv flush --drive d0;kv info --drive d0;\
        kv rm k --drive d0;\
        secret new;secret new --nqn nqn.2026-11.io.csdstore:host;array down"
        .split(';')
    {
        run(line);
    }
    let missed: Vec<_> =
        page.commands().into_iter().filter(|command| !seen.iter().any(|s| s == command)).collect();
    assert!(missed.is_empty(), "nobody ran {missed:?}");
    array.csd(&["array", "up"]).expect(0, &[]);
    array.kill(1);
    let down = array.csd(&["array", "status", "--json"]).expect(4, &[]).json();
    let wrong = page.wrong("array status", "csd array status", &down["result"]);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A page with a missing or an additional field is detected.
#[test]
fn a_field_too_many_or_too_few_is_seen_in_json() {
    let mut page = Page::read();
    let value = serde_json::json!({ "name": "x" });
    assert!(page.wrong("rm", "csd rm", &value).is_empty());
    assert!(!page.wrong("rm", "csd rm", &serde_json::json!({ "name": 1 })).is_empty());
    assert!(!page.wrong("rm", "csd rm", &serde_json::json!({})).is_empty());
    page.tables.get_mut("csd rm").unwrap().clear();
    assert!(!page.wrong("rm", "csd rm", &value).is_empty());
}
