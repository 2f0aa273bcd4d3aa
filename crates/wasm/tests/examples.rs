//! Compares the examples of the SDK with the same computed here: as kept in `sdk/built`, and as
//! built now if the tools are there.

#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use csd_buffer::Buffer;
use csd_kernels::program::{self, Engine, Failure, Limits};
use csd_wasm::{Entry, Wasm};

fn sdk() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk")
}

fn wasm() -> &'static Wasm {
    static WASM: OnceLock<Wasm> = OnceLock::new();
    WASM.get_or_init(|| Wasm::new().unwrap())
}

/// Runs a program over one stream in chunks of odd lengths.
fn run(program: &Path, parameters: &[u8], data: &[u8]) -> Result<(u64, Vec<u8>), Failure> {
    let compiled = wasm().compile(&std::fs::read(program).unwrap()).unwrap();
    let program = compiled.start(parameters, &Limits::default())?;
    let mut chunks = Vec::new();
    let mut rest = data;
    for length in [1, 70_000, 3, 300_001, 1 << 20].into_iter().cycle() {
        let (head, tail) = rest.split_at(rest.len().min(length));
        chunks.push(Buffer::from_slice(head));
        rest = tail;
        if rest.is_empty() {
            break;
        }
    }
    program::run(program, vec![chunks])
}

/// Checks that the program's answers over two parts of the data fold to that over the whole.
fn folds(program: &Path, parameters: &[u8], data: &[u8], cut: usize) {
    let module = wasm().module(&std::fs::read(program).unwrap()).unwrap();
    assert!(module.has(Entry::Fold));
    let part = |data: &[u8]| {
        let (result, output) = run(program, parameters, data).unwrap();
        let result = result.to_le_bytes();
        vec![Buffer::from_slice(&result), Buffer::from_slice(&output)]
    };
    let (before, after) = data.split_at(cut);
    let fold = module.begin(Entry::Fold, parameters, &Limits::default());
    let folded = program::run(fold, vec![part(before), part(after)]).unwrap();
    assert!(folded == run(program, parameters, data).unwrap(), "{}", program.display());
    let fold = module.begin(Entry::Fold, parameters, &Limits::default());
    let half = vec![vec![Buffer::from_slice(&[0; 7])], part(after)];
    let torn = program::run(fold, half).unwrap_err();
    assert!(torn.reason.contains("no partial answer"), "{torn}");
}

fn pattern(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[7]
    };
    (0..length).map(|_| next()).collect()
}

fn numbers(data: &[u8]) -> impl Iterator<Item = i32> {
    data.as_chunks::<4>().0.iter().map(|four| i32::from_le_bytes(*four))
}

fn filter(program: &Path) {
    let data = pattern(3 << 20);
    for bound in [i32::MIN, -5, 1 << 30, i32::MAX] {
        let (result, output) = run(program, &bound.to_le_bytes(), &data).unwrap();
        let expected: Vec<i32> = numbers(&data).filter(|number| *number > bound).collect();
        assert_eq!(result, expected.len() as u64);
        assert!(numbers(&output).eq(expected), "{}", program.display());
    }
    let torn = run(program, &[0; 4], &data[..101]).unwrap_err();
    assert!(torn.reason.contains("ends within an element"), "{torn}");
    let missing = run(program, &[], &data).unwrap_err();
    assert!(missing.reason.contains("the parameter is an i32"), "{missing}");
}

fn count(program: &Path) {
    let data: Vec<u8> = pattern(2 << 20).iter().flat_map(|byte| [byte % 7, 0, 0, 0]).collect();
    for wanted in [0, 6, 7] {
        let (result, _) = run(program, &i32::to_le_bytes(wanted), &data).unwrap();
        assert_eq!(result, numbers(&data).filter(|number| *number == wanted).count() as u64);
    }
}

fn top_k(program: &Path) {
    let mut values: Vec<f32> =
        numbers(&pattern(1 << 20)).map(|number| number as f32 / 7.0).collect();
    values.extend([f32::NAN, f32::INFINITY, -0.0, 0.0]);
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    values.retain(|value| !value.is_nan());
    values.sort_by(|a, b| b.total_cmp(a));
    for k in [1u32, 10, 1024] {
        let (result, output) = run(program, &k.to_le_bytes(), &data).unwrap();
        let found: Vec<f32> =
            numbers(&output).map(|bits| f32::from_bits(bits.cast_unsigned())).collect();
        assert_eq!((result, &found[..]), (k.into(), &values[..k as usize]));
    }
    folds(program, &100u32.to_le_bytes(), &data, 4000);
    let few = run(program, &5u32.to_le_bytes(), &data[..8]).unwrap();
    assert_eq!((few.0, few.1.len()), (2, 8), "fewer than asked for");
    assert!(run(program, &1025u32.to_le_bytes(), &data).is_err());
}

fn histogram(program: &Path) {
    let data = pattern((2 << 20) + 3);
    let (result, output) = run(program, &[], &data).unwrap();
    let mut expected = [0u64; 256];
    data.iter().for_each(|byte| expected[usize::from(*byte)] += 1);
    assert_eq!(result, data.len() as u64);
    assert_eq!(output, expected.iter().flat_map(|count| count.to_le_bytes()).collect::<Vec<u8>>());
    folds(program, &[], &data, 12_345);
}

fn grep(program: &Path) {
    let line = |at: usize| match at % 5 {
        0 => format!("line {at} with needle in it"),
        1 => String::new(),
        2 => "needl".repeat(at % 90),
        _ => format!("nothing here, {at}"),
    };
    let text: Vec<String> = (0..40_000).map(line).collect();
    let data = text.join("\n");
    let (result, output) = run(program, b"needle", data.as_bytes()).unwrap();
    let expected: Vec<&String> = text.iter().filter(|line| line.contains("needle")).collect();
    assert_eq!(result, expected.len() as u64);
    let lines: String = expected.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    assert!(output == lines.as_bytes());
    let module = wasm().module(&std::fs::read(program).unwrap()).unwrap();
    let records = module.begin(Entry::Records, &[], &Limits::default());
    assert_eq!(program::run(records, vec![]), Ok((1, vec![])), "its records are lines");
    let long_hit = [&vec![b'y'; 66_000][..], b"x\n"].concat();
    for word in [&b""[..], b"a\nb"] {
        let wrong = run(program, word, b"a\nb\n").unwrap_err();
        assert!(wrong.reason.contains("what to look for"), "{wrong}");
    }
    assert!(run(program, b"x", &long_hit).is_err());
    let long = run(program, b"x", &[b'x'; 70_000]).unwrap_err();
    assert!(long.reason.contains("longer than 64 KiB"), "{long}");
}

fn crc(program: &Path) {
    for length in [0, 1, 9, (3 << 20) + 5] {
        let data = pattern(length);
        let (result, _) = run(program, &[], &data).unwrap();
        assert_eq!(result, u64::from(crc32c::crc32c(&data)), "{length} bytes");
    }
    assert_eq!(run(program, &[], b"123456789").unwrap().0, 0xE306_9283, "the check value");
}

type Check = fn(&Path);

/// Every example with its check.
const ALL: [(&str, Check); 10] = [
    ("rust-filter", filter),
    ("rust-count", count),
    ("rust-top_k", top_k),
    ("rust-histogram", histogram),
    ("rust-grep", grep),
    ("rust-crc", crc),
    ("c-histogram", histogram),
    ("c-top_k", top_k),
    ("c-grep", grep),
    ("c-crc", crc),
];

#[test]
fn the_examples_that_are_kept_are_right() {
    for (name, check) in ALL {
        check(&sdk().join("built").join(name).with_extension("wasm"));
    }
}

/// Readers compare this digest with the output of `csd program load`.
#[test]
fn the_guide_has_the_digest_of_grep_as_it_is_kept() {
    let grep = std::fs::read(sdk().join("built/rust-grep.wasm")).unwrap();
    let digest: String =
        blake3::hash(&grep).as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let guide = std::fs::read_to_string(sdk().join("../docs/guide/programs.md")).unwrap();
    assert!(guide.contains(&format!("digest {digest}\n")), "it is {digest}");
}

#[test]
fn the_examples_are_right_when_they_are_built_now() {
    let folder = sdk().join("built-now");
    let built = Command::new(sdk().join("build.sh")).arg("built-now").output().unwrap();
    let said = String::from_utf8_lossy(&built.stdout).into_owned();
    assert!(built.status.success(), "{said}{}", String::from_utf8_lossy(&built.stderr));
    print!("{said}");
    for (name, check) in ALL {
        let program = folder.join(name).with_extension("wasm");
        let skipped = if name.starts_with("c-") { "SKIPPED: C" } else { "SKIPPED: Rust" };
        match program.exists() {
            true => check(&program),
            false => assert!(said.contains(skipped), "{name} was not built"),
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}
