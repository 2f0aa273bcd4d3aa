//! Examples of the SDK with bytes changed at random: each mutant is refused or runs within its
//! limits, and the drive goes on serving. `CSD_MUTANTS=10000` runs more than the few here.

use std::path::Path;

use csd_tests::wire::Command;

use crate::host::{Host, INDEX};

struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }
}

fn mutant(random: &mut Random, program: &[u8]) -> Vec<u8> {
    let mut mutant = program.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(mutant.len());
        match random.below(4) {
            0 => mutant[at] ^= 1 << random.below(8),
            1 => mutant[at] = random.below(256) as u8,
            2 => drop(mutant.remove(at)),
            _ => mutant.insert(at, random.below(256) as u8),
        }
    }
    mutant
}

#[test]
fn mutants_are_refused_or_held() {
    let count = std::env::var("CSD_MUTANTS").map_or(150, |count| count.parse().unwrap());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/built");
    let names = ["rust-grep", "rust-top_k", "c-crc", "rust-filter", "c-histogram"];
    let programs =
        names.map(|name| std::fs::read(folder.join(name).with_extension("wasm")).unwrap());
    let mut host = Host::new();
    host.write(0, &[b'x'; 4096]);
    let mut random = Random(0x0005_EED0_FA11);
    let (mut refused, mut failed, mut ran) = (0, 0, 0);
    for number in 0..count {
        let program = mutant(&mut random, &programs[number % programs.len()]);
        match host.load(INDEX, &program) {
            0x18E => refused += 1,
            0 => {
                assert_eq!(host.activate(INDEX, true), 0);
                let data = [
                    &crate::host::descriptor(0, 4096)[..],
                    &crate::host::descriptor(8192, 65_536),
                    &[2, 0, 0, 0],
                ];
                let data = data.concat();
                let command = Command::new(0x01, 5).dword(2, INDEX).dword(3, 2);
                let command = command.dword(4, data.len() as u32).dword(10, 2).dword(11, 200);
                match host.io.command_in_capsule(command, &data).status {
                    0 => ran += 1,
                    0x7C0 => failed += 1,
                    status => panic!("mutant {number}: {status:#x}"),
                }
                assert_eq!(host.activate(INDEX, false), 0);
            }
            status => panic!("mutant {number}: {status:#x}"),
        }
    }
    println!("{count} mutants: {refused} refused, {failed} ended, {ran} ran to an end");
    assert!(refused > count / 10 && ran > 0, "{refused} refused, {failed} failed, {ran} ran");
    assert_eq!(host.read(0, 4096), [b'x'; 4096], "what they read is as it was");
}
