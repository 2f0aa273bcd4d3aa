//! Real clocks in tests: no test asserts that something takes less than some time, because whether
//! it does is up to the machine and to what else runs there.
//!
//! The rule reads functions of tests: files in a folder `tests`, files whose names end in `tests`,
//! and modules of tests. In each it follows the readings of clocks from the calls that make them
//! through assignments and results of functions, and reports each assertion that such a value is
//! less than another (`<`, `<=`, `>`, `>=` or `contains`). The rule allows:
//!
//! - Least times, such as those of a drive that imitates a slower one: they hold on any machine.
//! - Limits that only end a hang: the assertion stands in a loop that calls `sleep`, or the limit
//!   is an argument of what waits (`recv_timeout`, `timeout=`), so that nothing is compared.
//! - Virtual time. In Rust it is the time of `csd_reactor::now` in a file that names
//!   `csd_reactor::sim::World`, inside a call of a function that does, or in a crate of tests that
//!   never calls `block_on` or `csd_reactor::run`. The clocks of `std::time`, and `/proc/*/stat`,
//!   are real in every file. Python has only real clocks: those of [`PYTHON`].

use std::collections::{BTreeMap, BTreeSet};

use crate::size::{function_lines, function_name};
use crate::tree::{Tree, UNIT_TESTS, code_of, python_code_of};
use crate::words::{has_word, names};

/// Calls that read a clock, in Python.
const PYTHON: [&str; 12] = [
    "perf_counter(",
    "perf_counter_ns(",
    "process_time(",
    "process_time_ns(",
    "monotonic(",
    "monotonic_ns(",
    "thread_time(",
    "time.time(",
    "time_ns(",
    "timeit(",
    "datetime.now(",
    "getrusage(",
];

/// Function of a test, with its code: comments and literals are blanked.
struct Function<'a> {
    path: &'a str,
    /// Number of its first line, from 1.
    line: usize,
    name: String,
    /// Lines of its code, and the same lines as they are written.
    code: Vec<String>,
    source: Vec<&'a str>,
    /// True if the clock of the reactor is a simulation's in its file.
    is_virtual: bool,
}

/// Functions that share their names: those of a crate of tests, or of one file of unit tests.
#[derive(Default)]
struct Target<'a> {
    functions: Vec<Function<'a>>,
    /// True if something runs on a real reactor.
    is_real: bool,
    /// Names of the functions that make a simulated world.
    worlds: BTreeSet<String>,
    /// Names of the functions that return a reading of a clock.
    clocks: BTreeSet<String>,
}

/// Checks that no test asserts an upper limit of a real time.
pub(crate) fn clocks(tree: &Tree) -> Vec<String> {
    let mut targets: BTreeMap<String, Target<'_>> = BTreeMap::new();
    for (path, text) in tree.ending(".rs").chain(tree.ending(".py")) {
        let Some((key, from)) = target_of(path, text) else { continue };
        targets.entry(key).or_default().add(path, text, from);
    }
    let mut violations = BTreeSet::new();
    for mut target in targets.into_values() {
        while target.learn() {}
        for function in &target.functions {
            violations.extend(target.limits(function));
        }
    }
    let text = |(path, line, source)| format!("{path}:{line}: a limit of a real time: {source}");
    violations.into_iter().map(text).collect()
}

/// Returns the name of a file's target, and the byte at which its tests begin; `None` without any.
fn target_of(path: &str, text: &str) -> Option<(String, usize)> {
    if let Some(inside) = path.strip_prefix("tests/") {
        // It has a crate in each of its folders.
        let folder = inside.split_once('/').map_or("", |(folder, _)| folder);
        return Some((format!("tests/{folder}"), 0));
    }
    if let Some((folder, _)) = path.split_once("/tests/") {
        return Some((folder.to_owned(), 0));
    }
    let is_rust = path.ends_with(".rs");
    let from = if path.ends_with("tests.rs") { Some(0) } else { text.find(UNIT_TESTS) };
    from.filter(|_| is_rust).map(|from| (path.to_owned(), from))
}

impl<'a> Target<'a> {
    /// Adds the functions of a file that stand behind byte `from`.
    fn add(&mut self, path: &'a str, text: &'a str, from: usize) {
        let is_rust = path.ends_with(".rs");
        let code = if is_rust { code_of(text) } else { python_code_of(text) };
        let has = |names_: &[&str]| names_.iter().any(|name| names(&code, name));
        let is_of_system = has(&["std::time::Instant", "SystemTime"]);
        let has_world = has(&["csd_reactor::sim::World"]);
        let is_virtual = has_world && !is_of_system;
        self.is_real |= is_of_system || has(&["block_on", "csd_reactor::run"]);
        let before = text[..from].lines().count();
        let code: Vec<&str> = code.lines().skip(before).collect();
        let source: Vec<&str> = text.lines().skip(before).collect();
        for (start, line) in code.iter().enumerate() {
            let python = line.trim_start().trim_start_matches("async ").strip_prefix("def ");
            let name = if is_rust { function_name(line) } else { python };
            let Some(name) = name.and_then(|name| name.split('(').next()) else { continue };
            let rest = &code[start..];
            let end = start + if is_rust { function_lines(rest) } else { block_lines(rest) };
            let code: Vec<String> = code[start..end].iter().map(|&line| line.into()).collect();
            if has_world && code.iter().any(|line| has_word(line, "World")) {
                self.worlds.insert(name.to_owned());
            }
            let source = source[start..end].to_vec();
            let (line, name) = (before + start + 1, name.to_owned());
            self.functions.push(Function { path, line, name, code, source, is_virtual });
        }
    }

    /// Adds the functions that return a reading, of those known; returns true if there are new
    /// ones.
    fn learn(&mut self) -> bool {
        let returning = self.functions.iter().filter(|function| {
            let read = self.readings(function);
            let code = function.code.join("\n");
            let results: Vec<&str> = if function.is_rust() {
                let body = code.split_once("{\n").map_or("", |(_, body)| body);
                let value =
                    code.contains("->").then(|| last(body.trim_end().trim_end_matches('}')));
                value.into_iter().collect()
            } else {
                code.match_indices("return ")
                    .map(|(at, word)| statement(&code[at + word.len()..], false))
                    .collect()
            };
            results.iter().any(|result| self.is_read(&value_of(result), &read))
        });
        let new: BTreeSet<String> = returning.map(|function| function.name.clone()).collect();
        let known = self.clocks.len();
        self.clocks.extend(new);
        self.clocks.len() > known
    }

    /// Returns the names that a function gives to readings of a clock and to what follows from
    /// them.
    fn readings(&self, function: &Function<'_>) -> BTreeSet<String> {
        let mut read = BTreeSet::new();
        loop {
            let known = read.len();
            for (index, _) in function.code.iter().enumerate() {
                let Some((target, value)) = function.assignment(index) else { continue };
                let from_system = function.source[index].contains("/stat\"");
                if from_system || self.is_read(&value, &read) {
                    let words = target.split(|c: char| !(c.is_alphanumeric() || c == '_'));
                    let named = words.filter(|word| word.starts_with(|c: char| c.is_lowercase()));
                    read.extend(named.filter(|word| *word != "mut").map(str::to_owned));
                }
            }
            if read.len() == known {
                return read;
            }
        }
    }

    /// Returns true if an expression reads a clock, calls a function that does, or has one of
    /// these names.
    fn is_read(&self, value: &str, names: &BTreeSet<String>) -> bool {
        let calls = |name: &String| has_word(value, name) && value.contains(&format!("{name}("));
        // `x.now()` is the time of something that is not the clock, such as a world.
        let rust = value.replace(".now()", "").contains("now()") || value.contains(".elapsed()");
        rust || PYTHON.iter().any(|call| value.contains(call))
            || names.iter().any(|name| has_word(value, name))
            || self.clocks.iter().any(calls)
    }

    /// Returns path, line and text of each assertion of an upper limit in a function.
    fn limits(&self, function: &Function<'a>) -> Vec<(&'a str, usize, &'a str)> {
        let read = self.readings(function);
        let mut found = Vec::new();
        for (index, line) in function.code.iter().enumerate() {
            let Some(at) = ["assert!(", "assert "]
                .iter()
                .find_map(|call| line.find(call).map(|at| at + call.len()))
            else {
                continue;
            };
            let rest = [&line[at..], &function.code[index + 1..].join("\n")].join("\n");
            let asserted = statement(&rest, function.is_rust());
            if self.has_upper_limit(asserted, &read) && !self.is_excused(function, index) {
                found.push((function.path, function.line + index, function.source[index].trim()));
            }
        }
        found
    }

    /// Returns true if an assertion says that a reading is at most something.
    fn has_upper_limit(&self, asserted: &str, read: &BTreeSet<String>) -> bool {
        // Behind the first comma stands the message.
        let asserted = &asserted[..top_level(asserted, ',').unwrap_or(asserted.len())];
        let spaced = asserted.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_read = |operand: &str| self.is_read(operand, read);
        let parts =
            ["&&", "||", " and ", " or "].into_iter().fold(vec![&spaced[..]], |parts, by| {
                parts.into_iter().flat_map(|part| part.split(by)).collect()
            });
        parts.into_iter().any(|part| {
            let words: Vec<&str> = part.split(' ').collect();
            let compares = |word: &&str| matches!(*word, "<" | "<=" | ">" | ">=");
            let operands: Vec<String> = words.split(|w| compares(w)).map(|o| o.join(" ")).collect();
            let operators = words.iter().filter(|word| compares(word));
            let in_range = part.split_once(".contains(").is_some_and(|(_, inside)| is_read(inside));
            in_range
                || operators.zip(operands.windows(2)).any(|(operator, operands)| {
                    is_read(&operands[usize::from(operator.starts_with('>'))])
                })
        })
    }

    /// Returns true if the time at a line of a function is virtual, or only ends a hang.
    fn is_excused(&self, function: &Function<'_>, index: usize) -> bool {
        let headers = function.around(index);
        let in_world = headers.iter().any(|at| {
            let line = &function.code[*at];
            *at > 0 && self.worlds.iter().any(|name| line.contains(&format!("{name}(")))
        });
        let is_virtual = function.is_rust() && (function.is_virtual || in_world || !self.is_real);
        let waits = headers.iter().any(|at| {
            let line = function.code[*at].trim_start();
            let is_loop = line.starts_with("while ") || line.contains("loop {");
            let block = block_lines(&function.code[*at..]);
            is_loop && function.code[*at..at + block].iter().any(|line| line.contains("sleep("))
        });
        is_virtual || waits
    }
}

impl Function<'_> {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Returns the pattern and the value of the assignment that begins on this line; a value that
    /// is added to a collection or a cell is assigned to that.
    fn assignment(&self, index: usize) -> Option<(&str, String)> {
        let line = &self.code[index];
        let at = line.find("let ").map_or(line.len() - line.trim_start().len(), |at| at + 4);
        let kept = [".push(", ".set(", ".append("].iter().find_map(|call| {
            line.split_once(call).map(|(into, _)| (into, into.len() + call.len()))
        });
        let assigned = || {
            let equals = at + line[at..].find("= ")?;
            let target = line[at..equals].trim_end_matches(['+', ' ']);
            let is_name = |c: char| c.is_alphanumeric() || "_., ()".contains(c);
            let target = target.split(": ").next()?;
            target.chars().all(is_name).then_some((target, equals + 2))
        };
        let (target, from) = assigned().or(kept)?;
        let rest = [&line[from..], &self.code[index + 1..].join("\n")].join("\n");
        let value = statement(&rest, self.is_rust());
        // The block of `if let` and `while let` is no part of the value.
        let is_condition = line.contains("if let ") || line.contains("while let ");
        let value = if is_condition { value.split('{').next()? } else { value };
        Some((target, value_of(value)))
    }

    /// Returns the lines that open the blocks around a line, innermost first.
    fn around(&self, index: usize) -> Vec<usize> {
        let mut headers = Vec::new();
        let mut least = indent(&self.code[index]);
        for at in (0..index).rev() {
            if !self.code[at].trim().is_empty() && indent(&self.code[at]) < least {
                least = indent(&self.code[at]);
                headers.push(at);
            }
        }
        headers
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the number of lines of a block that its indentation ends.
fn block_lines(lines: &[impl AsRef<str>]) -> usize {
    let outside = |line: &str| !line.trim().is_empty() && indent(line) <= indent(lines[0].as_ref());
    let end = lines.iter().skip(1).position(|line| outside(line.as_ref()));
    end.map_or(lines.len(), |end| end + 1)
}

/// Returns the position of a character outside of all brackets, or of the bracket that closes what
/// the text stands in.
fn top_level(text: &str, searched: char) -> Option<usize> {
    let mut depth = 0;
    let found = text.char_indices().find(|(_, c)| {
        depth += i32::from("([{".contains(*c)) - i32::from(")]}".contains(*c));
        depth < 0 || depth == 0 && *c == searched
    });
    found.map(|(at, _)| at)
}

/// Returns the statement or the argument that a text begins with.
fn statement(text: &str, is_rust: bool) -> &str {
    &text[..top_level(text, if is_rust { ';' } else { '\n' }).unwrap_or(text.len())]
}

/// Returns what stands behind the last statement of a block's inside: its value.
fn last(mut block: &str) -> &str {
    while let Some(at) = top_level(block, ';').filter(|at| block[*at..].starts_with(';')) {
        block = &block[at + 1..];
    }
    block
}

/// Returns an expression with only the values of its blocks, and without the conditions of matches.
fn value_of(expression: &str) -> String {
    let Some((before, rest)) = expression.split_once('{') else { return expression.to_owned() };
    // No character is searched: this is the bracket that closes the block.
    let end = top_level(rest, '\0').unwrap_or(rest.len());
    let inside = last(&rest[..end]).replace("=>", "\n");
    let unconditional: Vec<&str> =
        inside.lines().map(|line| line.split(" if ").next().unwrap_or("")).collect();
    let inside = value_of(&unconditional.join("\n"));
    let after = value_of(rest.get(end + 1..).unwrap_or(""));
    format!("{before} {inside} {after}")
}

#[cfg(test)]
mod tests;
