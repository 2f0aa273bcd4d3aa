//! Compares `csd put` and `csd get` of a file with the slower of two bounds: the loopback network,
//! and cp with sync.
//!
//! Runs the built `csd` with drives in memory, in a folder on the disk to measure. Every round uses
//! new files: it times cp and sync, the same bytes through a bare loopback socket, put and sync,
//! and get and sync. With `--against`, each round also times get of another `csd`, to compare two
//! versions. A figure is the median of the rounds' ratios to `min(loopback, cp + sync)`. Every file
//! that get writes is compared with the source. Drives are not pinned to cores.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Parser;
use csd_bench::Error;
use csd_bench::record::{self, Destination};
use csd_bench::report::{Comparison, medians};
use csd_bench::timing::rate;
use serde_json::json;

/// Compares put and get of a file with the loopback network and with cp.
#[derive(Parser)]
struct Arguments {
    /// Number of rounds measured, after one to warm up.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Size of the file, MiB.
    #[arg(long, default_value_t = 1024)]
    mib: u32,
    /// Number of drives.
    #[arg(long, default_value_t = 2)]
    drives: u32,
    /// Folder on the disk to measure; it must not exist.
    #[arg(long, default_value = "build/bench-objects")]
    dir: PathBuf,
    /// The `csd` to measure [default: next to this program]
    #[arg(long)]
    csd: Option<PathBuf>,
    /// Another `csd`, whose get is measured in the same rounds.
    #[arg(long)]
    against: Option<PathBuf>,
    #[command(flatten)]
    record: Destination,
}

/// Aim: ratio to the smaller bound.
const GOAL: f64 = 0.6;
/// Number of rates of a round: cp with sync, loopback, put, get, and the other program's get.
const RATES: usize = 5;
/// Size of one write to the loopback socket, bytes.
const PIECE: usize = 1 << 20;

fn main() -> Result<(), Error> {
    let arguments = Arguments::parse();
    let default = std::env::current_exe().expect("our own path").with_file_name("csd");
    let program = |csd: PathBuf| {
        csd.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", csd.display()))
    };
    let csd = program(arguments.csd.clone().unwrap_or(default));
    let against = arguments.against.clone().map(program);
    std::fs::create_dir_all(arguments.dir.parent().unwrap_or(Path::new(".")))
        .and_then(|()| std::fs::create_dir(&arguments.dir))
        .unwrap_or_else(|error| panic!("{}: {error}", arguments.dir.display()));
    let place = Place { csd, against, dir: arguments.dir.clone() };
    let bytes = (arguments.mib as usize) << 20;
    make(&place.dir.join("source"), bytes as u64);
    // Room for the object, and as much again for what the log has not cleaned yet.
    let size = format!("{}M", (arguments.mib * 4 / arguments.drives).max(512));
    let drives = arguments.drives.to_string();
    place.run(&["array", "up", "--drives", &drives, "--media", "memory", "--size", &size]);
    println!("{}, {} rounds of {} MiB", record::machine(), arguments.rounds, arguments.mib);
    let rounds: Vec<[f64; RATES]> = (0..=arguments.rounds).map(|_| place.round(bytes)).collect();
    drop(place);
    let rounds = &rounds[1..];
    let mut record = arguments.record.open()?;
    let rates = medians(rounds.iter().copied())?;
    let mut commands = vec![("put", 2), ("get", 3)];
    commands.extend(arguments.against.is_some().then_some(("other get", 4)));
    for (name, index) in commands {
        let pairs = rounds.iter().map(|round| (round[0].min(round[1]), round[index]));
        let compared = Comparison::of(&pairs.collect::<Vec<_>>())?;
        let ([cp, loopback, ..], rate, text) = (rates, rates[index], compared.ratio_text());
        println!(
            "{name}: {rate:.2} GB/s; cp + sync {cp:.2}, loopback {loopback:.2}; goal {GOAL}, {text}"
        );
        record.append(json!({
            "workload": format!("{name} {} MiB", arguments.mib),
            "cp_sync_gb_per_s": cp,
            "loopback_gb_per_s": loopback,
            "gb_per_s": rate,
            "ratio_quartiles": compared.ratio,
            "goal": GOAL,
            "inconclusive": compared.is_inconclusive(),
        }))?;
    }
    Ok(())
}

/// Writes bytes that do not compress, and makes them durable.
fn make(path: &Path, bytes: u64) {
    let random = File::open("/dev/urandom").expect("a source of bytes");
    let mut file = File::create(path).expect("a file");
    std::io::copy(&mut random.take(bytes), &mut file).expect("room");
    file.sync_all().expect("room");
}

struct Place {
    csd: PathBuf,
    against: Option<PathBuf>,
    dir: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        // Runs after a failed round as well, so that no drive keeps running.
        let down = ["array", "down", "--delete", "--yes"];
        let _ = Command::new(&self.csd).args(down).current_dir(&self.dir).output();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Place {
    fn run(&self, arguments: &[&str]) {
        self.run_by(&self.csd, arguments);
    }

    fn run_by(&self, csd: &Path, arguments: &[&str]) {
        let done = Command::new(csd).args(arguments).current_dir(&self.dir).output();
        let done = done.expect("csd starts");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "csd {arguments:?}: {said}");
    }

    /// Runs one round and returns its rates, GB/s.
    fn round(&self, bytes: usize) -> [f64; RATES] {
        let path = |name: &str| self.dir.join(name);
        let cp = rate(bytes, || {
            let copied = Command::new("cp").arg(path("source")).arg(path("copy")).status();
            assert!(copied.expect("cp starts").success());
            File::open(path("copy")).and_then(|file| file.sync_all()).expect("a sync");
        });
        std::fs::remove_file(path("copy")).expect("the file was ours");
        let loopback = rate(bytes, || loopback(bytes));
        let put = rate(bytes, || self.run(&["put", "source", "object"]));
        let get = self.get(&self.csd, bytes);
        let other = self.against.as_ref().map_or(0.0, |csd| self.get(csd, bytes));
        self.run(&["rm", "object"]);
        [cp, loopback, put, get, other]
    }

    /// Gets the object to a new file, syncs it, and compares it with the source.
    fn get(&self, csd: &Path, bytes: usize) -> f64 {
        let back = self.dir.join("back");
        let rate = rate(bytes, || {
            self.run_by(csd, &["get", "object", "back"]);
            File::open(&back).and_then(|file| file.sync_all()).expect("a sync");
        });
        let same = Command::new("cmp").arg(self.dir.join("source")).arg(&back).status();
        assert!(same.expect("cmp starts").success(), "what was got is not what was put");
        std::fs::remove_file(&back).expect("the file was ours");
        rate
    }
}

/// Sends `bytes` bytes through a loopback socket.
fn loopback(bytes: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut stream = TcpStream::connect(address).expect("a connection");
            let piece = vec![0x5A; PIECE];
            for _ in 0..bytes / PIECE {
                stream.write_all(&piece).expect("a reader");
            }
        });
        let (mut stream, _) = listener.accept().expect("a client");
        let (mut piece, mut left) = (vec![0; PIECE], bytes);
        while left > 0 {
            let count = stream.read(&mut piece).expect("a writer");
            assert!(count > 0, "the writer ended early");
            left -= count;
        }
    });
}
