//! The encodings to measure: the paper's, or the ones that the command line names.

use csd_bench::ec::{Case, Shape};

use super::pace::Pace;
use crate::bench::failure;
use crate::cli::bench_ec::{Ec, Size};
use crate::report::Failure;

/// Sizes of section IV.2, blocks after encoding and MB: Figure 5 over sizes, Figure 6 over numbers
/// of blocks. Of the sizes between 16 and 128 MB the paper's text names none; these double.
const SIZES: [(u64, u64); 6] = [(24, 16), (24, 32), (24, 64), (24, 128), (12, 64), (48, 64)];
/// Size of Figure 7.
const POWERFUL: (u64, u64) = (48, 64);
/// Powers of the drive and the host in Figure 7: (a) a more powerful drive, up to the one at which
/// the break-even point is 1; (b) a more powerful drive and a less powerful host.
const POWERS: [(f64, f64); 5] = [(2.0, 1.0), (3.0, 1.0), (4.0, 1.0), (5.0, 1.0), (2.3, 1.0 / 2.3)];

/// Returns the cases to measure.
pub(super) fn cases(options: &Ec, pace: Option<&Pace>) -> Result<Vec<Case>, Failure> {
    let Ec { sizes, drive_power, host_power, .. } = options;
    if pace.is_none() && drive_power.iter().any(|power| !is_one(*power)) {
        let why = "a drive without a pace has the power of this machine: give --pace a profile";
        return Err(Failure::usage(format!("--drive-power: {why}")));
    }
    let paper = || SIZES.map(|(blocks, block_mb)| Size { blocks, block_mb });
    let all = sizes.is_empty() && drive_power.is_empty() && host_power.is_empty();
    let sizes = if sizes.is_empty() { paper().to_vec() } else { sizes.clone() };
    let one = |powers: &[f64]| if powers.is_empty() { vec![1.0] } else { powers.to_vec() };
    let mut cases = Vec::new();
    for size in sizes {
        for drive in one(drive_power) {
            for host in one(host_power) {
                cases.push(case(size, (drive, host), pace)?);
            }
        }
    }
    if all && pace.is_some() {
        let (blocks, block_mb) = POWERFUL;
        for powers in POWERS {
            cases.push(case(Size { blocks, block_mb }, powers, pace)?);
        }
    }
    Ok(cases)
}

fn case(
    size: Size,
    (drive_power, host_power): (f64, f64),
    pace: Option<&Pace>,
) -> Result<Case, Failure> {
    let bytes = size.block_mb.saturating_mul(1_000_000);
    let shape = Shape::new(size.blocks, bytes).map_err(failure)?;
    let pace_ns_per_byte = pace.map(|pace| pace.ns_per_byte(&shape)).transpose()?;
    Ok(Case { shape, drive_power, host_power, pace_ns_per_byte })
}

/// Returns true for a power that changes nothing.
pub(super) fn is_one(power: f64) -> bool {
    (power - 1.0).abs() < 1e-9
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Bench, Cli, Command};

    fn of(words: &[&str]) -> Result<Vec<Case>, Failure> {
        let words = [&["csd", "bench", "ec"][..], words].concat();
        let Command::Bench(Bench::Ec(options)) = Cli::try_parse_from(words).unwrap().command else {
            panic!("another command")
        };
        cases(&options, Pace::load(&options.pace)?.as_ref())
    }

    #[test]
    fn without_options_they_are_the_paper_s() {
        let cases = of(&[]).unwrap();
        assert_eq!(cases.len(), SIZES.len() + POWERS.len());
        let sizes: Vec<String> = cases.iter().map(|case| case.shape.to_string()).collect();
        assert_eq!((&*sizes[0], &*sizes[10]), ("24 blocks of 16 MB", "48 blocks of 64 MB"));
        assert!(cases[..6].iter().all(|case| is_one(case.drive_power) && is_one(case.host_power)));
        assert!((cases[10].drive_power * cases[10].host_power - 1.0).abs() < 1e-9);
        // 32 blocks of data in 22.3 s.
        assert!((cases[5].pace_ns_per_byte.unwrap() - 22.3e9 / 2.048e9).abs() < 1e-9);
        // Whatever the rounds of the host, the drives encode each once.
        for (rounds, most_s) in [(5, 170.0), (10, 240.0)] {
            let expected_s: f64 = cases.iter().map(|case| case.expected_s(rounds)).sum();
            assert!((90.0..most_s).contains(&expected_s), "{rounds} rounds take {expected_s} s");
        }
        assert_eq!(of(&["--pace", "none"]).unwrap().len(), SIZES.len());
    }

    #[test]
    fn options_are_combined() {
        let words = ["--sizes", "12x64,48x64", "--drive-power", "1,2,5", "--host-power", "1,0.5"];
        assert_eq!(of(&words).unwrap().len(), 12);
        assert_eq!(of(&["--drive-power", "2"]).unwrap().len(), SIZES.len());
        assert!(of(&["--pace", "none", "--drive-power", "2"]).is_err());
    }
}
