//! Tests of lists of edges: forms, bases, directions, and what is refused.

use proptest::prelude::*;

use super::*;

fn auto(text: &str) -> Result<Edges, String> {
    with(text, &Options::default())
}

fn with(text: &str, options: &Options) -> Result<Edges, String> {
    read("x", text.as_bytes(), options).map_err(|error| error.to_string())
}

fn weightless() -> Options {
    Options { ignore_weights: true, ..Options::default() }
}

#[track_caller]
fn refused(text: &str, options: &Options, why: &str) {
    let error = with(text, options).unwrap_err();
    assert!(error.contains(why), "{text:?}: {error}");
}

#[test]
fn edges_are_two_numbers_a_line_with_comments() {
    let text = "# nodes\n0 1\n\n2,3 % far\r\n  4\t5\r6 7";
    assert_eq!(auto(text).unwrap().edges, [[0, 1], [2, 3], [4, 5], [6, 7]]);
    assert_eq!(auto("\u{feff}0 1\n").unwrap().edges, [[0, 1]]);
    for (wrong, why) in [
        ("0 1\n2", "x, line 2: an edge is two node numbers"),
        ("0 1 {}\n0 1 2", "x, line 2: an edge is two node numbers, and \"2\" follows"),
        ("0 1 {'weight': 3}", "x, line 1: an edge is two node numbers, and \"{'weight': 3}\""),
        ("0", "x, line 1: an edge is two node numbers, from"),
        ("0 -1", "x, line 1: \"-1\" is no node number"),
        ("0 4294967295", "x, line 1: \"4294967295\" is no node number"),
        ("0 1\r0 x", "x, line 2: \"x\" is no node number"),
        ("# nobody\n", "x has no edges"),
    ] {
        let error = auto(wrong).unwrap_err();
        assert!(error.starts_with(why), "{wrong:?}: {error}");
    }
}

#[test]
fn attributes_that_are_empty_are_no_weights_and_weights_can_be_ignored() {
    refused("0 1 {}\n2,3,{}\n4 5 { }\n", &Options::default(), "line 3");
    let edges = "0 1 {}\n0,2,{},\n1 2 {'weight': 0.5, 'color': 'red'}\n2 0 7.5 8\n3 0\n";
    let read = with(edges, &weightless()).unwrap();
    assert_eq!(read.edges, [[0, 1], [0, 2], [1, 2], [2, 0], [3, 0]]);
    assert_eq!(read.taken.lines_with_weights, 2);
    refused("0 1 0.5", &Options::default(), "weights are not used");
    refused("0", &weightless(), "two node numbers");
}

#[test]
fn numbers_that_begin_at_1_say_so_or_are_refused() {
    let text = "1 2\n2 3\n3 1\n1 3\n";
    refused(text, &Options::default(), "--base 0 or --base 1");
    let base = |base| Options { base: Some(base), ..Options::default() };
    let read = with(text, &base(1)).unwrap();
    assert_eq!((read.edges[0], read.taken.nodes, read.taken.base), ([0, 1], 3, 1));
    let read = with(text, &base(0)).unwrap();
    assert_eq!((read.edges[0], read.taken.nodes), ([1, 2], 4));
    assert_eq!(read.taken.nodes_with_edges, 3);
    // With as many nodes as the largest number, it begins at 1.
    let nodes = |nodes| Options { nodes: Some(nodes), ..Options::default() };
    assert_eq!(with(text, &nodes(3)).unwrap().taken.base, 1);
    refused(text, &nodes(4), "--base 0 or --base 1");
    refused("0 1\n", &base(1), "a node has the number 0");
    // Other labels stay as they are.
    let read = auto("7 9\n9 7\n8 7\n").unwrap().taken;
    let said = "list of edges, numbers from 0, directed: 10 nodes, 3 with edges, 3 edges";
    assert_eq!(read.to_string(), said);
}

#[test]
fn graphs_of_snap_are_read_and_counted() {
    let head = "# Directed graph: x\n# Nodes: 4 Edges: 3\n# FromNodeId\tToNodeId\n";
    let read = auto(&format!("{head}0\t1\n0\t2\n2\t0\n")).unwrap();
    assert_eq!((read.taken.format, read.taken.nodes), (Format::Snap, 4));
    let said = "SNAP's list of edges, numbers from 0, directed: 4 nodes, 3 with edges, 3 edges";
    assert_eq!(read.taken.to_string(), said);
    let read = auto(&format!("{head}1\t4\n1\t3\n2\t1\n")).unwrap();
    assert_eq!((read.taken.base, read.edges[0]), (1, [0, 3]));
    let cut = format!("{head}0\t1\n0\t2\n");
    refused(&cut, &Options::default(), "says 3 edges, and 2 lines of edges");
    let list = Options { format: Format::List, ..Options::default() };
    assert_eq!(with(&cut, &list).unwrap().edges.len(), 2);
    let both = "# Undirected graph: y\n0\t1\n2\t2\n";
    refused(both, &Options::default(), "--directed no");
    let read = with(both, &Options { directed: Some(false), ..Options::default() }).unwrap();
    assert_eq!(read.edges, [[0, 1], [2, 2], [1, 0]]);
    let said =
        "list of edges, numbers from 0, each line both ways: 3 nodes, all with edges, 3 edges";
    assert_eq!(read.taken.to_string(), said);
}

#[test]
fn matrices_are_read_as_their_banner_says() {
    let pattern = "%%MatrixMarket matrix coordinate pattern general\n%c\n\n4 4 2\n1 2\n3 1\n";
    let read = auto(pattern).unwrap();
    assert_eq!(read.edges, [[0, 1], [2, 0]]);
    let said =
        "MatrixMarket, numbers from 1, stored from 0, directed: 4 nodes, 3 with edges, 2 edges";
    assert_eq!(read.taken.to_string(), said);
    let real = "%%matrixmarket MATRIX Coordinate REAL symmetric\n3 3 3\n1 1 2\n2 1 .5\n3 2 1\n";
    refused(real, &Options::default(), "x, line 3: an entry has a value");
    let read = with(real, &weightless()).unwrap();
    assert_eq!(read.edges, [[0, 0], [1, 0], [2, 1], [0, 1], [1, 2]]);
    let said = "MatrixMarket, numbers from 1, stored from 0, each line both ways: 3 nodes, \
                all with edges, 5 edges, weights of 3 lines ignored";
    assert_eq!(read.taken.to_string(), said);
    let skew = "%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 7\n";
    assert_eq!(with(skew, &weightless()).unwrap().edges, [[1, 0], [0, 1]]);
    refused(&skew.replace("2 1 7", "2 2 7"), &weightless(), "no entry on its diagonal");
    for (from, to, why) in [
        ("coordinate", "array", "--layout rows"),
        ("pattern", "complex", "\"complex\" is not read"),
        ("general", "hermitian", "\"hermitian\" is not read"),
        ("general", "", "four words"),
        ("4 4 2", "4 5 2", "4 rows and 5 columns"),
        ("4 4 2", "4 4 3", "has 2 of 3 entries"),
        ("4 4 2", "4 4 1", "line 6: it has more than 1 entries"),
        ("4 4 2", "2 2 2", "line 6: rows and columns are from 1 to 2"),
        ("4 4 2", "4 4", "three whole numbers"),
        ("1 2", "0 2", "from 1 to 4"),
        ("1 2", "1 2 7", "a row and a column"),
        ("\n3 1", "\n", "has 1 of 2 entries"),
    ] {
        refused(&pattern.replacen(from, to, 1), &Options::default(), why);
    }
    refused(&pattern.replace("general", "symmetric"), &Options::default(), "in one triangle");
    let base = Options { base: Some(0), ..Options::default() };
    refused(pattern, &base, "--base 0 contradicts the file");
    let format = Options { format: Format::MatrixMarket, ..Options::default() };
    refused("0 1\n", &format, "begins with %%MatrixMarket");
}

#[test]
fn graphs_of_konect_are_read_as_their_first_line_says() {
    let text = "% asym unweighted\n% 2 3 3\n1 2\n2 3\n";
    let read = auto(text).unwrap();
    assert_eq!((read.edges, read.taken.format), (vec![[0, 1], [1, 2]], Format::Konect));
    let read = auto(&text.replace("asym", "sym")).unwrap();
    assert_eq!(read.edges, [[0, 1], [1, 2], [1, 0], [2, 1]]);
    refused(&text.replace("asym", "bip"), &Options::default(), "bipartite");
    refused(&text.replace("% 2", "% 3"), &Options::default(), "says 3 edges, and 2 lines");
    refused("% sym positive\n1 2 5 1082040961\n", &Options::default(), "--ignore-weights");
}

#[test]
fn graphs_of_other_programs_are_refused_with_the_option_that_decides() {
    let list = Options { format: Format::List, ignore_weights: true, ..Options::default() };
    for (text, why) in [
        ("3 3\n2 3\n1 3\n1 2\n", "METIS"),
        ("% a path\n3 2\n2\n1 3\n2\n", "METIS"),
        ("4 1\n3\n\n1\n\n", "METIS"),
        ("3 2 001\n2 7\n1 7 3 9\n2 9\n", "METIS"),
        ("3 2 11 1\n5 2 7\n6 1 7 3 9\n7 2 9\n", "METIS"),
        ("4 3\n0 1\n1 2\n2 3\n", "may begin with the numbers of 4 nodes and 3 edges"),
        ("4 4 2\n1 2 0.5\n3 4 1\n", "may begin with the numbers of"),
        ("c a comment\np edge 3 2\ne 1 2\ne 2 3\n", "DIMACS"),
        ("p sp 3 1\na 1 2 7\n", "DIMACS"),
    ] {
        for options in [Options::default(), weightless()] {
            refused(text, &options, why);
        }
    }
    assert_eq!(with("4 3\n0 1\n1 2\n2 3\n", &list).unwrap().edges.len(), 4);
    // A list whose first line fits by its numbers alone.
    assert_eq!(auto("5 3\n0 1\n1 2\n").unwrap().edges.len(), 3);
}

#[test]
fn nodes_that_the_file_names_are_kept() {
    let read = auto("# Nodes: 9 Edges: 1\n0 1\n").unwrap();
    assert_eq!(read.taken.nodes, 9);
    let options = Options { nodes: Some(7), ..Options::default() };
    assert_eq!(with("0 1\n", &options).unwrap().taken.nodes, 7);
}

proptest! {
    #[test]
    fn no_text_panics(text in "[0-3%#{} ,.a-z:A-Z\n\r]{0,60}", directed in any::<bool>()) {
        let heads = ["", "%%MatrixMarket matrix coordinate real symmetric\n", "% sym\n"];
        for head in heads {
            let options = Options { directed: Some(directed), ..weightless() };
            let _either = with(&format!("{head}{text}"), &options);
            let _either = auto(&format!("{head}{text}"));
        }
    }
}
