//! Output of commands with `--json`, compared with the page that describes it.
//!
//! The page is the schema: the test reads its tables. Every field of a real output must be in them
//! with its type, and every field in them must be in the output.

use crate::support::data::small_i32;
use crate::support::harness::{Array, built};
use crate::support::json_page::Page;

#[test]
fn json_of_every_command_is_as_the_page_says() {
    let page = Page::read();
    let array = Array::up(2, "256M");
    let (bytes, _) = small_i32(51, 100_000);
    array.file("x.bin", &bytes);
    let sorted: Vec<u8> = (0..1000i32).flat_map(i32::to_le_bytes).collect();
    array.file("s.bin", &sorted);
    array.file("links", b"0 1\n1 2\n2 0\n3 0\n");
    array.file("cells.csv", b"v\n1\n");
    array.file("windows", br#"{"active": [1], "utilisation": [0, 0.5], "requests": 1}"#);
    let url = array.url(0);
    let grep = built("rust-grep");
    // Tests of their own run these.
    let own = "drive serve;bench block;bench kv;bench verify;bench ec;scrub;kv range;attach;mount;\
               tunnel up;os up;os status;os down;meter;os service start;\
               os service stop;array add;array remove;\
               array replace;grep;wc;top-k;histogram;drive service policy;drive trace";
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
        ls --all;du;sum x;sync csd:none folder;export t.tar x;import t.tar t/;\
        cp y y2;mv y2 y3;stat x;stat b;get x back;\
        run count x --equal 7 --on all;run vector-add x y -o sum --check;\
        run array-merge s t -o merged;run page-rank g --on all;run page-rank g -o ranks;\
        run page-rank g2 --edges links;put cells.csv csv --csv --column v;\
        run verify x;run verify x -o sums;run summarize x;rm y;array status;\
        array reclaim;array rebuild d0;array rebalance;repair;\
        array up;\
        drive log;drive status;drive service list;drive service pause clean;\
        drive service resume clean d0;drive service rate scrub 1M;drive service share scrub 5%;\
        program new lines-rs;\
        program load GREP --drive URL --host-nqn nqn.2026-11.io.csdstore:host;\
        program activate 16 --drive URL --host-nqn nqn.2026-11.io.csdstore:host;\
        program list --drive URL --host-nqn nqn.2026-11.io.csdstore:host;\
        bench sched --replay windows;\
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
