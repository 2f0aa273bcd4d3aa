//! The speed of grep compared with ripgrep on one core, and with looking for newlines and reading.
//!
//! Ours is what a drive computes: an execution for each chunk of 1 MiB, whose checksum it compares
//! first, and the host's joining of the answers. ripgrep is a process with one thread over the same
//! file, which is in the page cache; its output goes to a pipe. Both take wall time, in pairs.

use std::error::Error;
use std::hint::black_box;
use std::process::{Command, Stdio};

use csd_bench::report::{medians, quartiles};
use csd_bench::timing::rate;
use csd_kernels::kernel::{Kernel, Wanted};
use csd_kernels::program::{Check, Chunk, Execution, Inputs};
use csd_kernels::search::{Found, Join, KERNEL, Parameters, Wants};
use csd_reactor::Buffer;

use crate::{Rival, read};

const CHUNK_BYTES: usize = 1 << 20;

/// Pattern, options of grep.
const CASES: [(&str, &str); 10] = [
    ("Sherlock Holmes", ""),
    ("unwrap_or_else", ""),
    ("unwrap_or_else", "-c"),
    ("unwrap_or_else", "-i"),
    ("unwrap_or_else|expect_err|from_utf8", ""),
    ("[A-Z][a-z]+Error", ""),
    (r"\bfn [a-z_]+\(\)", "-c"),
    (r"[0-9]+\.[0-9]+\.[0-9]+", "-c"),
    ("self", "-c"),
    ("self", "-v"),
];

/// Prints a row for every case.
pub(crate) fn compare(rival: &Rival) -> Result<(), Box<dyn Error>> {
    let text = std::fs::read(&rival.file)?;
    println!("{} bytes, {} rounds; GB/s are medians", text.len(), rival.rounds);
    println!("ratios to ripgrep are quartiles of pairs");
    for (pattern, option) in CASES {
        let mut counts = [0; 2];
        let mut ratios = Vec::with_capacity(rival.rounds);
        let rounds: Vec<[f64; 4]> = (0..rival.rounds)
            .map(|_| {
                let mut chunks = chunks(&text);
                let own = rate(text.len(), || counts[0] = search(pattern, option, &mut chunks));
                let mut ended = Ok(0);
                let other = rate(text.len(), || ended = ripgrep(rival, pattern, option));
                counts[1] = ended.unwrap_or(0);
                let newlines = rate(text.len(), || {
                    black_box(memchr(black_box(&text)));
                });
                let reading = rate(text.len(), || {
                    black_box(read(black_box(&text)));
                });
                ratios.push(own / other);
                [own, other, newlines, reading]
            })
            .collect();
        if counts[0] != counts[1] {
            return Err(format!("{pattern}: {} lines, ripgrep {}", counts[0], counts[1]).into());
        }
        let [own, other, newlines, reading] = medians(rounds)?;
        println!(
            "{option:2} {pattern:36} {:8} lines: {own:6.2}, ripgrep {other:6.2}, ratio {:.2?}; \
             newlines {newlines:6.2}, read {reading:6.2}",
            counts[0],
            quartiles(ratios)
        );
    }
    Ok(())
}

/// Counts newlines, as the fastest pass over a text that looks at each byte.
fn memchr(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

/// Returns the chunks as a drive reads them, with their checksums.
fn chunks(text: &[u8]) -> Vec<Chunk> {
    let chunk = |bytes| {
        let check = Check::End(crc32c::crc32c(bytes));
        Chunk { bytes: Buffer::from_slice(bytes), skip: 0, check }
    };
    text.chunks(CHUNK_BYTES).map(chunk).collect()
}

/// Searches the chunks; returns the number of lines.
fn search(pattern: &str, option: &str, chunks: &mut Vec<Chunk>) -> u64 {
    let wants = if option == "-c" { Wants::Count } else { Wants::Lines };
    let (ignore_case, invert) = (option == "-i", option == "-v");
    let parameters = Parameters { pattern: pattern.to_owned(), ignore_case, invert, wants };
    let mut join = Join::new(&parameters).expect("a pattern");
    let mut each = |found: Found<'_>| {
        black_box(found.lines);
        Ok::<_, std::convert::Infallible>(())
    };
    for chunk in chunks.drain(..) {
        let program = KERNEL.start(&parameters.encode(), Wanted::Bytes).expect("parameters");
        let mut inputs = Inputs::new(1);
        inputs.push(0, chunk);
        let mut execution = Execution::new(program, inputs, Wanted::Bytes.output());
        let result = execution.finish().expect("text");
        let mut answer = Vec::new();
        execution.into_parts().1.iter().for_each(|part| answer.extend_from_slice(part));
        join.add((result, &answer), &mut each).expect("an answer");
    }
    join.end(&mut each).expect("an end");
    join.selected()
}

/// Runs ripgrep; returns the number of lines.
fn ripgrep(rival: &Rival, pattern: &str, option: &str) -> Result<u64, std::io::Error> {
    let mut command = Command::new(&rival.ripgrep);
    command.args(["--no-config", "-a", "-j1", "--no-unicode", "--no-filename"]);
    command.args(Some(option).filter(|option| !option.is_empty()));
    let output = command.arg(pattern).arg(&rival.file).stdin(Stdio::null()).output()?;
    let text = output.stdout;
    Ok(match option {
        "-c" => String::from_utf8_lossy(&text).trim().parse().unwrap_or(0),
        _ => memchr(&text) as u64,
    })
}
