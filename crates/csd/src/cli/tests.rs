//! Tests of the command line: accepted and refused arguments.

use super::*;

/// Returns every command that help shows, as its words.
pub(crate) fn shown(at: &clap::Command, path: &[String]) -> Vec<Vec<String>> {
    let inner = at.get_subcommands().filter(|inner| !inner.is_hide_set());
    let each = inner.flat_map(|inner| {
        let words = [path, &[inner.get_name().to_owned()]].concat();
        [vec![words.clone()], shown(inner, &words)].concat()
    });
    each.collect()
}

#[test]
fn the_declaration_is_consistent() {
    command().debug_assert();
}

#[test]
fn negative_numbers_and_global_options_parse() {
    let cli = Cli::try_parse_from(["csd", "run", "count", "x", "--equal", "-1", "--json"]).unwrap();
    assert!(cli.json);
    let Command::Run(Run::Kernel(count)) = cli.command else { panic!("{:?}", cli.command) };
    let given = (count.kernel.name(), count.arguments.text("equal"), count.ways.on);
    assert_eq!(given, ("count", Some("-1"), crate::cli::ways::Who::Drives));
}

#[test]
fn grep_has_the_letters_of_grep() {
    let words = ["csd", "grep", "-vinqF", "-a", "a", "x", "y", "--verbose"];
    let matches = command().try_get_matches_from(words).unwrap();
    let cli = <Cli as clap::FromArgMatches>::from_arg_matches(&matches).unwrap();
    assert!(cli.quiet && cli.verbose);
    let Command::Grep(grep) = cli.command else { panic!("{:?}", cli.command) };
    let letters = [grep.invert_match, grep.ignore_case, grep.line_number, grep.fixed_strings];
    assert_eq!((letters, grep.count), ([true; 4], false));
    assert_eq!((&grep.pattern[..], grep.names.len()), ("a", 2));
    let cli = <Cli as clap::FromArgMatches>::from_arg_matches(
        &command().try_get_matches_from(["csd", "grep", "-v", "--", "-x", "y"]).unwrap(),
    );
    let cli = cli.unwrap();
    let Command::Grep(grep) = cli.command else { panic!("{:?}", cli.command) };
    assert!(grep.invert_match && !cli.verbose && grep.pattern == "-x");
    assert!(command().try_get_matches_from(["csd", "grep", "a"]).is_err());
}

#[test]
fn wrong_values_are_refused() {
    for wrong in [
        "csd put x --chunk 1XB",
        "csd put x --type i16",
        "csd put x --column 1",
        "csd drive serve --media memory --size 1G --block 1000",
        "csd drive serve --media memory --size 1G --kv 101%",
        "csd drive serve --media memory --size 1G --allow host",
        "csd secret new --hash 128",
        "csd drive serve --media memory --size 1G --auth-group ffdhe1024",
        "csd drive serve --media memory --size 1G --auth-hash 256,1",
        "csd array up --drives 0",
        "csd run count x",
        "csd run count x --equal 1 --on nowhere",
        "csd run vector-add a b",
        "csd run verify x --auto --unroll 2",
        "csd put x --align y --layout range",
        "csd run count x --equal 1 --overlap serial",
        "csd characterize --allow-write",
        "csd bench kv --write",
        "csd bench kv --value-bytes 17M",
        "csd bench kv --threads 0",
        "csd bench kv --url x --media y",
        "csd bench block --pairs 0",
        "csd bench block --write",
        "csd bench block --url x --spin-us 1",
        "csd characterize --size 1K",
        "csd characterize --drive x --media memory",
    ] {
        let error = Cli::try_parse_from(wrong.split(' ')).expect_err(wrong);
        assert_eq!(error.exit_code(), 2, "{wrong}");
    }
}
