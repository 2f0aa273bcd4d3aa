//! Every kernel, every way to run, on both placements, for one, two and four drives: answers are
//! those that the test computes itself, and outputs are read back byte for byte.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use crate::support::data::{bytes, i32s, npy, numbers};
use crate::support::harness::Array;

/// Runs a kernel all three ways, compared, and checks the report of each.
#[track_caller]
fn all_ways(array: &Array, arguments: &[&str]) -> Value {
    all_ways_to(0, array, arguments)
}

/// Does the same, with this exit code.
fn all_ways_to(code: i32, array: &Array, arguments: &[&str]) -> Value {
    let arguments = [&["run"], arguments, &["--on", "all", "--cores", "2", "--json"]].concat();
    let answer = array.csd(&arguments).expect(code, &[]).json();
    assert_eq!(answer["result"]["checked"], true);
    let runs = answer["result"]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    let looked_at = |run: &Value| -> u64 {
        let shares = run["shares"].as_array().unwrap();
        shares.iter().map(|share| share["elements"].as_u64().unwrap()).sum()
    };
    assert!(runs.iter().all(|run| looked_at(run) == looked_at(&runs[0])), "{runs:?}");
    let crossed = |run: &Value| run["crossed_bytes"].as_u64().unwrap();
    // With little data most bytes are commands, and page rank's vector goes to every drive.
    let much = answer["result"]["bytes"].as_u64().unwrap() > 100_000;
    if much && !arguments.contains(&"page-rank") {
        assert!(crossed(&runs[0]) < crossed(&runs[1]), "drives let less cross: {runs:?}");
    }
    assert_eq!(array.csd(&["ls", "--all", "--json"]).json()["result"]["objects"], objects(array));
    answer["result"].clone()
}

/// Returns the sealed objects: outputs made only for comparison are gone.
fn objects(array: &Array) -> Value {
    array.csd(&["ls", "--json"]).json()["result"]["objects"].clone()
}

fn fetch(array: &Array, name: &str) -> Vec<u8> {
    array.csd(&["get", name, "-"]).expect(0, &[]).stdout
}

fn put(array: &Array, file: &str, name: &str, more: &[&str]) {
    array.csd(&[&["put", file, name], more].concat()).expect(0, &[]);
}

fn draws(seed: u64, count: usize, below: u64) -> Vec<i32> {
    numbers(seed, count).map(|n| i32::try_from(n % below).unwrap()).collect()
}

/// Calls `test` with arrays of one, two and four drives, and options of both placements.
fn everywhere(test: impl Fn(&Array, &str)) {
    for drives in [1, 2, 4] {
        let array = Array::up(drives, "1G");
        for on in ["kv", "block"] {
            test(&array, on);
        }
    }
}

#[test]
fn vector_add_writes_the_sums() {
    let (left, right) = (draws(1, 1_200_003, 1 << 30), draws(2, 1_200_003, 1 << 31));
    let sums = i32s(left.iter().zip(&right).map(|(a, b)| a.wrapping_add(*b)));
    let (left, right) = (i32s(left), i32s(right));
    everywhere(|array, on| {
        array.file("left", &left);
        array.file("right", &right);
        let [a, b, c] = ["a", "b", "c"].map(|name| format!("{name}-{on}"));
        put(array, "left", &a, &["--type", "i32", "--on", on]);
        put(array, "right", &b, &["--type", "i32", "--on", on, "--align", &a]);
        let result = all_ways(array, &["vector-add", &a, &b, "-o", &c]);
        assert_eq!(result["added"], 1_200_003);
        assert_eq!(
            (&result["output"]["type"], &result["output"]["on"]),
            (&"i32".into(), &"kv".into())
        );
        assert!(fetch(array, &c) == sums, "{on}");
        array.csd(&["run", "vector-add", &a, &c, "-o", "again", "--check"]).expect(0, &[]);
        array.csd(&["rm", "again"]).expect(0, &[]);
    });
}

#[test]
fn array_merge_writes_every_value_once() {
    // Many equal elements, and one input denser than the other.
    let sorted = |seed, count| {
        let mut values = draws(seed, count, 700_000);
        values.sort_unstable();
        values
    };
    let (left, right) = (sorted(3, 900_001), sorted(4, 400_000));
    let merged: BTreeSet<i32> = left.iter().chain(&right).copied().collect();
    let (left, right, merged) = (i32s(left), i32s(right), i32s(merged));
    everywhere(|array, on| {
        array.file("left", &left);
        array.file("right", &right);
        let [a, b, c] = ["a", "b", "c"].map(|name| format!("{name}-{on}"));
        let range = ["--type", "i32", "--layout", "range", "--chunk", "64K", "--on", on];
        put(array, "left", &a, &range);
        put(array, "right", &b, &["--type", "i32", "--on", on, "--align", &a]);
        let result = all_ways(array, &["array-merge", &a, &b, "-o", &c]);
        assert_eq!(result["merged"], merged.len() as u64 / 4);
        assert!(fetch(array, &c) == merged, "{on}");
        assert!(fetch(array, &a) == left && fetch(array, &b) == right, "{on}");
        // A merge is split like its inputs, so it can be merged with them again.
        let again = array.csd(&["run", "array-merge", &c, &b, "-o", "again", "--json"]);
        assert_eq!(again.expect(0, &[]).json()["result"]["merged"], merged.len() as u64 / 4);
        array.csd(&["rm", "again"]).expect(0, &[]);
        // Other kernels also take objects that are split by values.
        let (first, zero) = (&left[..4], i32s([0]));
        let zeros = left.chunks(4).filter(|value| *value == zero).count() as u64;
        assert_eq!(first, &zero[..]);
        assert_eq!(all_ways(array, &["count", &a, "--equal", "0"])["count"], zeros);
    });
}

#[test]
fn verify_gives_the_digest_of_the_pages_however_they_lie() {
    let data = bytes(5, 8 * 300_001);
    let mut sorted: Vec<i32> = draws(6, 500_000, 1 << 31);
    sorted.sort_unstable();
    let sums = |bytes: &[u8], page: usize| -> Vec<u8> {
        bytes.chunks(page).flat_map(|page| crc32c::crc32c(page).to_le_bytes()).collect()
    };
    let digest = |sums: &[u8]| format!("{:08x}", crc32c::crc32c(sums));
    everywhere(|array, on| {
        array.file("data", &data);
        put(array, "data", on, &["--on", on, "--chunk", "256K"]);
        for (page, size) in [("4K", 4096), ("512", 512), ("256K", 256 << 10)] {
            let result = all_ways(array, &["verify", on, "--page-bytes", page, "--unroll", "3"]);
            assert_eq!(result["digest"], digest(&sums(&data, size)), "{page}");
            assert_eq!(result["pages"], data.len().div_ceil(size) as u64);
        }
        let output = format!("sums-{on}");
        all_ways(array, &["verify", on, "-o", &output]);
        assert!(fetch(array, &output) == sums(&data, 4096), "{on}");
        let plan = ["verify", on, "--units", "8", "--pages-per-unit", "100", "--unroll", "8"];
        assert_eq!(all_ways(array, &plan)["digest"], digest(&sums(&data, 4096)));
    });
    let array = Array::up(2, "1G");
    array.file("sorted", &i32s(sorted));
    put(&array, "sorted", "x", &["--type", "i32", "--layout", "range", "--chunk", "64K"]);
    all_ways(&array, &["verify", "x", "-o", "sums"]);
    let auto = array.csd(&["run", "verify", "x", "--auto", "--json"]).expect(0, &[]).json();
    let plain = array.csd(&["run", "verify", "x", "--json"]).expect(0, &[]).json();
    assert_eq!(auto["result"]["digest"], plain["result"]["digest"]);
    assert_eq!(auto["result"]["digest"], digest(&fetch(&array, "sums")));
    assert_eq!(auto["result"]["unroll"], 0);
    let host = ["run", "verify", "x", "--auto", "--on", "host", "--json"];
    let host = array.csd(&host).expect(0, &[]).json();
    assert_eq!(host["result"]["digest"], plain["result"]["digest"]);
    assert!(host["result"]["unroll"].as_u64().unwrap() > 0);
    let all = array.csd(&["run", "verify", "x", "--auto", "--on", "all", "-o", "again"]);
    let said = all.expect(0, &[]).text().to_string();
    assert!(said.contains("the drives change units and unrolling"), "{said}");
    assert!(fetch(&array, "again") == fetch(&array, "sums"));
}

/// Change of all ranks in a step below which page rank ends; networkx has it per node.
const TOLERANCE: f64 = 3000.0 * 1e-6;

/// Computes ranks of a graph as networkx does, by plain sums in f64.
fn ranks(nodes: usize, edges: &[[usize; 2]]) -> Vec<f64> {
    let n = f64::from(u32::try_from(nodes).unwrap());
    let mut degrees = vec![0u32; nodes];
    edges.iter().for_each(|[from, _]| degrees[*from] += 1);
    let mut ranks = vec![1.0 / n; nodes];
    for _ in 0..100 {
        let dangling: f64 = (0..nodes).filter(|i| degrees[*i] == 0).map(|i| ranks[i]).sum();
        let mut next = vec![0.15 / n + 0.85 * dangling / n; nodes];
        for [from, to] in edges {
            next[*to] += 0.85 * ranks[*from] / f64::from(degrees[*from]);
        }
        let distance: f64 = next.iter().zip(&ranks).map(|(a, b)| (a - b).abs()).sum();
        ranks = next;
        if distance < TOLERANCE {
            break;
        }
    }
    ranks
}

#[test]
fn page_rank_of_a_graph_is_that_of_plain_sums() {
    let nodes = 3000;
    let draw = numbers(7, 40_000).map(|n| usize::try_from(n % 2900).unwrap());
    let draw: Vec<usize> = draw.collect();
    let edges: Vec<[usize; 2]> = draw.chunks(2).map(|pair| [pair[0] % 1500, pair[1]]).collect();
    let mut text = String::from("# from to\n");
    edges.iter().for_each(|[from, to]| writeln!(text, "{from} {to}").unwrap());
    let expected = ranks(nodes, &edges);
    everywhere(|array, on| {
        array.file("edges", text.as_bytes());
        let count = nodes.to_string();
        put(array, "edges", on, &["--graph", "--nodes", &count, "--on", on, "--chunk", "4K"]);
        let output = format!("ranks-{on}");
        let total = format!("--tolerance={TOLERANCE}");
        let result = all_ways(array, &["page-rank", on, "--top", "5", &total]);
        assert_eq!((&result["converged"], &result["nodes"]), (&true.into(), &nodes.into()));
        let checked = ["run", "page-rank", on, "-o", &output, "--on", "split", "--check"];
        array.csd(&[&checked[..], &[&total]].concat()).expect(0, &[]);
        let found = fetch(array, &output);
        let found = found.as_chunks().0.iter().map(|rank| f64::from_le_bytes(*rank));
        let found: Vec<f64> = found.collect();
        assert_eq!(found.len(), nodes);
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{on}");
        let best = (0..nodes).max_by(|a, b| found[*a].total_cmp(&found[*b])).unwrap();
        assert_eq!(result["top"][0]["node"], best);
        assert_eq!(result["top"].as_array().unwrap().len(), 5);
    });
}

#[test]
fn page_rank_makes_the_graph_itself_and_says_when_ranks_have_not_settled() {
    let array = Array::up(2, "1G");
    array.file("edges", b"0 1\n1 2\n2 0\n3 0\n");
    let result = all_ways_after(&array, &["page-rank", "g", "--edges", "edges"]);
    assert_eq!(result["nodes"], 4);
    let settled = array.csd(&["run", "page-rank", "g"]).expect(0, &[]).text();
    let words = format!("settled after {} steps, change ", result["iterations"]);
    assert!(settled.contains(&words), "{settled}");
    let few = ["run", "page-rank", "g", "--iterations", "1", "--tolerance", "0"];
    array.csd(&few).expect(4, &["not settled after 1 step: change "]);
    let few = array.csd(&[&few[..], &["--json"]].concat()).expect(4, &[]).json();
    let warning = few["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("not settled after 1 step"), "{few}");
}

/// A tolerance is for all ranks together: a large graph's first steps do not reach this one.
#[test]
fn page_rank_of_a_large_graph_is_not_over_before_it_has_settled() {
    let array = Array::up(2, "1G");
    // A path with edges from all nodes back to the first one: ranks change for many steps.
    let edges: String = (1..20_000).map(|n| format!("{} {n}\n{n} 0\n", n - 1)).collect();
    array.file("edges", edges.as_bytes());
    array.csd(&["put", "edges", "g", "--graph"]).expect(0, &[]);
    let run = |more: &[&str]| {
        let ran = array.csd(&[&["run", "page-rank", "g", "--json"], more].concat());
        ran.expect(0, &[]).json()["result"].clone()
    };
    let result = run(&[]);
    assert!(result["distance"].as_f64().unwrap() < 1e-4, "{result}");
    assert!(result["iterations"].as_u64().unwrap() > 5, "{result}");
    assert!(run(&["--tolerance", "0.1"])["iterations"].as_u64() < result["iterations"].as_u64());
}

/// Runs once, so that the graph is stored, then all ways without its edges.
fn all_ways_after(array: &Array, arguments: &[&str]) -> Value {
    array.csd(&[&["run"], arguments].concat()).expect(0, &[]);
    all_ways(array, &arguments[..2])
}

#[test]
fn page_rank_of_a_matrix_takes_whole_rows_whatever_the_chunks() {
    // Rows of 1,204 bytes: no chunk holds a whole number of them.
    let n = 301u16;
    let value = |i: u16, j: u16| f32::from((i * 7 + j * 3) % 11) / (f32::from(n) * 5.0);
    let matrix: Vec<Vec<f32>> =
        (0..n).map(|i| (0..n).map(move |j| value(i, j)).collect()).collect();
    let mut ranks = vec![1.0 / f64::from(n); usize::from(n)];
    for _ in 0..5 {
        let sum = |row: &Vec<f32>| row.iter().zip(&ranks).map(|(a, r)| f64::from(*a) * r).sum();
        let sums: Vec<f64> = matrix.iter().map(sum).collect();
        ranks = sums.iter().map(|sum: &f64| 0.85 * sum + 0.15 / f64::from(n)).collect();
    }
    let values: Vec<u8> = matrix.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
    let file = npy("<f4", &format!("({n}, {n})"), &values);
    everywhere(|array, on| {
        array.file("m.npy", &file);
        put(array, "m.npy", on, &["--layout", "rows", "--on", on, "--chunk", "4K"]);
        let steps = ["--iterations", "5", "--tolerance", "0"];
        let ranked = all_ways_to(4, array, &[&["page-rank", on], &steps[..]].concat());
        assert_eq!((&ranked["iterations"], &ranked["converged"]), (&5.into(), &false.into()));
        let output = format!("ranks-{on}");
        array.csd(&[&["run", "page-rank", on, "-o", &output], &steps[..]].concat()).expect(4, &[]);
        let found = fetch(array, &output);
        let found = found.as_chunks().0.iter().map(|rank| f64::from(f32::from_le_bytes(*rank)));
        assert!(found.zip(&ranks).all(|(a, b)| (a - b).abs() < 1e-6), "{on}");
    });
}

#[test]
fn floats_add_and_merge_as_ieee_754_says() {
    let array = Array::up(2, "1G");
    let bytes =
        |values: &[f64]| -> Vec<u8> { values.iter().flat_map(|v| v.to_le_bytes()).collect() };
    array.file("a", &bytes(&[f64::NEG_INFINITY, -1.5, -0.0, 0.0, 2.0, f64::MAX]));
    array.file("b", &bytes(&[-1.5, 0.0, 0.0, 1.0, 2.0, f64::INFINITY]));
    put(&array, "a", "a", &["--type", "f64", "--layout", "range"]);
    put(&array, "b", "b", &["--type", "f64", "--align", "a"]);
    all_ways(&array, &["array-merge", "a", "b", "-o", "merged"]);
    let merged = [f64::NEG_INFINITY, -1.5, 0.0, 1.0, 2.0, f64::MAX, f64::INFINITY];
    assert!(fetch(&array, "merged") == bytes(&merged));
    put(&array, "a", "c", &["--type", "f64"]);
    put(&array, "b", "d", &["--type", "f64", "--align", "c"]);
    all_ways(&array, &["vector-add", "c", "d", "-o", "sums"]);
    let sums = [f64::NEG_INFINITY, -1.5, 0.0, 1.0, 4.0, f64::INFINITY];
    assert!(fetch(&array, "sums") == bytes(&sums));
}

#[test]
fn empty_arrays_add_merge_and_verify_to_nothing() {
    let array = Array::up(2, "1G");
    array.file("nothing", b"");
    array.file("some", &i32s([1, 2, 2]));
    put(&array, "nothing", "a", &["--type", "i32"]);
    put(&array, "nothing", "b", &["--type", "i32", "--align", "a"]);
    let run = |arguments: &[&str]| array.csd(&[&["run"], arguments].concat()).expect(0, &[]);
    run(&["vector-add", "a", "b", "-o", "sums", "--check"]);
    assert_eq!(fetch(&array, "sums"), b"");
    assert!(run(&["verify", "a", "--check"]).text().contains("00000000"));
    put(&array, "some", "c", &["--type", "i32", "--layout", "range"]);
    put(&array, "nothing", "d", &["--type", "i32", "--align", "c"]);
    run(&["array-merge", "c", "d", "-o", "merged", "--check"]);
    assert_eq!(fetch(&array, "merged"), i32s([1, 2]));
    run(&["array-merge", "d", "d", "-o", "none", "--check"]);
    assert_eq!(fetch(&array, "none"), b"");
}

#[test]
fn summaries_are_exact_whoever_computes() {
    // Sums of these in floating point depend on their order: 1e16 + 1 is 1e16.
    let floats: Vec<f64> = draws(7, 700_001, 1 << 30)
        .into_iter()
        .enumerate()
        .map(|(index, n)| if index % 2 == 0 { 1e16 + f64::from(n) } else { -1e16 + f64::from(n) })
        .collect();
    // Each is an even integer below 2^54, so their sum is one, too.
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
    let sum = floats.iter().map(|value| *value as i128).sum::<i128>() as f64;
    let bytes = |values: &[f64]| -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    };
    everywhere(|array, on| {
        array.file("floats", &bytes(&floats));
        let name = format!("floats-{on}");
        put(array, "floats", &name, &["--type", "f64", "--on", on, "--chunk", "64K"]);
        let result = all_ways(array, &["summarize", &name]);
        let number = |field: &str| result[field].as_str().unwrap().parse::<f64>().unwrap();
        assert_eq!((number("sum"), &result["numbers"]), (sum, &700_001.into()));
        let of = |pick: fn(f64, f64) -> f64| floats.iter().copied().reduce(pick);
        assert_eq!(number("least"), of(f64::min).unwrap());
        assert_eq!(number("greatest"), of(f64::max).unwrap());
    });
    let array = Array::up(2, "1G");
    let summarize = |name: &str, values: &[f64]| {
        array.file(name, &bytes(values));
        put(&array, name, name, &["--type", "f64"]);
        all_ways(&array, &["summarize", name])
    };
    let odd = summarize("odd", &[f64::NAN, -0.0, 2.5, f64::INFINITY]);
    assert_eq!((&odd["nan"], &odd["numbers"]), (&1.into(), &3.into()));
    assert_eq!((&odd["sum"], &odd["greatest"]), (&"inf".into(), &"inf".into()));
    assert_eq!(odd["least"], "-0");
    let empty = summarize("empty", &[]);
    assert_eq!((&empty["sum"], &empty["least"]), (&"0".into(), &Value::Null));
    // JSON's numbers would lose digits of these in most readers.
    let wide = [i64::MIN, 4_611_686_018_427_400_250, i64::MAX];
    let bytes: Vec<u8> = wide.iter().flat_map(|number| number.to_le_bytes()).collect();
    array.file("wide", &bytes);
    put(&array, "wide", "wide", &["--type", "i64"]);
    let wide = all_ways(&array, &["summarize", "wide"]);
    assert_eq!(wide["sum"], "4611686018427400249");
    assert_eq!(
        (&wide["least"], &wide["greatest"]),
        (&i64::MIN.to_string().into(), &i64::MAX.to_string().into())
    );
    let words = array.csd(&["run", "summarize", "odd", "--on", "host"]).expect(0, &[]);
    assert!(words.text().contains("greatest  inf"), "{}", words.text());
}
