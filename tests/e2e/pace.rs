//! A drive paced by a profile, as a process: it does its work, and answers no sooner than the
//! profile's device would. The test sets no upper limit on time.

use std::time::{Duration, Instant};

use csd_initiator::{Address, Block, Compute, Controller, Kv, Options};
use csd_nvme::kv::Key;
use csd_nvme::vendor::execute::{Execution, Output, SourceData};
use csd_reactor::{Buffer, Class, block_on, spawn};

use crate::support::data::small_i32;
use crate::support::drive::Drive;
use crate::support::harness::Array;

/// 4 MB/s to the host, 2 MB/s from it; count loads 10 MB/s, then computes at 5 MB/s.
const PROFILE: &str = r#"
schema = 1
[meta]
machine = "two made-up drives"
[host]
cores = 1
[device.slow]
ext_read_Bps = 4000000
ext_write_Bps = 2000000
[device.other]
ext_read_Bps = 1
[[point]]
kernel = "count"
where = "drive"
device = "slow"
units = 1
bytes = 1000000
overlap = "serial"
load_s = { median = 0.1 }
comp_s = { median = 0.2 }
prov = "given"
"#;

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Runs `body` with a controller of a paced drive.
fn paced(body: impl AsyncFnOnce(&Controller) + Send + 'static) {
    let array = Array::without_drives();
    array.file("slow.toml", PROFILE.as_bytes());
    let mut drive = Drive { array, running: None };
    drive.start("memory", &["--pace", "slow.toml:slow"]);
    let url = drive.url();
    let address: Address = url.trim().parse().unwrap();
    let done = block_on(&csd_reactor::Config::default(), move || async move {
        let controller = Controller::connect(&address, &Options::default()).await.unwrap();
        body(&controller).await;
        controller.disconnect().await;
    });
    done.unwrap();
    drive.stop().expect(0, &[]);
}

/// Returns the result of `body` and the time that it took.
async fn timed<T>(body: impl Future<Output = T>) -> (T, Duration) {
    let begin = Instant::now();
    let value = body.await;
    (value, begin.elapsed())
}

#[test]
fn blocks_and_values_take_as_long_as_the_device_needs() {
    paced(async |controller| {
        let (data, _) = small_i32(71, 100_000);
        let data = &data[..384 << 10];
        let block = Block::open(controller, 1).unwrap();
        let write = block.write(0, vec![Buffer::from_slice(data)], false);
        let (written, took) = timed(write).await;
        written.unwrap();
        assert!(took >= seconds(393_216.0 / 2e6), "written in {took:?}");
        let (read, took) = timed(block.read(0, data.len())).await;
        assert!(read.unwrap()[..] == *data, "a paced drive does its work");
        assert!(took >= seconds(393_216.0 / 4e6), "read in {took:?}");

        let (kv, key) = (Kv::open(controller, 2).unwrap(), Key::new(b"paced").unwrap());
        let store = kv.store(&key, vec![Buffer::from_slice(&data[..200_000])], 0);
        let (stored, took) = timed(store).await;
        stored.unwrap();
        assert!(took >= seconds(0.1), "stored in {took:?}");
        let (value, took) = timed(kv.retrieve(&key, 200_000)).await;
        assert!(value.unwrap().unwrap()[..] == data[..200_000]);
        assert!(took >= seconds(0.05), "retrieved in {took:?}");
    });
}

#[test]
fn reads_at_once_share_the_bandwidth() {
    paced(async |controller| {
        let block = Block::open(controller, 1).unwrap();
        let all = async {
            let reads: Vec<_> = (0..4u64)
                .map(|i| {
                    let block = block.clone();
                    let read = async move { block.read(i << 17, 1 << 17).await };
                    spawn(Class::Foreground, read)
                })
                .collect();
            for read in reads {
                assert_eq!(read.await.unwrap().len(), 1 << 17);
            }
        };
        let ((), took) = timed(all).await;
        assert!(took >= seconds(524_288.0 / 4e6), "four reads in {took:?}");
    });
}

#[test]
fn an_execution_takes_what_its_point_says() {
    paced(async |controller| {
        let (data, sevens) = small_i32(72, 65_536);
        let block = Block::open(controller, 1).unwrap();
        block.write(0, vec![Buffer::from_slice(&data)], false).await.unwrap();
        let compute = Compute::open(controller, 5).unwrap();
        let programs = compute.programs().await.unwrap();
        let count = programs.iter().position(|program| program.pid() == 1).unwrap();
        let source = SourceData::Blocks { nsid: 1, slba: 0, skip: 0, bytes: 1 << 18 };
        // Type i32 and the value 7.
        let mut parameters = vec![0; 16];
        (parameters[0], parameters[8]) = (1, 7);
        let execution = Execution {
            program: 1,
            output: Output::Completion,
            sources: vec![source.on(0)],
            inline: vec![],
            digests: None,
            parameters,
            serial: false,
            cores: 1,
        };
        let index = u16::try_from(count).unwrap();
        let (result, took) = timed(compute.execute(index, &execution)).await;
        assert_eq!(result.unwrap(), sevens);
        assert!(took >= seconds(262_144.0 * 3e-7), "executed in {took:?}");
    });
}
