//! Executions on several cores of a drive: answers, outputs and failures equal those of one core,
//! in the simulation and on real back ends.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

mod cases;
mod real;
mod simulated;

use std::time::Duration;

use csd_initiator::{Address, Compute, Controller, Kv, Memory, Options};
use csd_nvme::capsule::Sqe;
use csd_nvme::status::Status;
use csd_nvme::vendor::execute::{Execution, Output, SourceData};
use csd_reactor::{Class, now, spawn, timeout};

use cases::{Case, MEMORY_NSID};

pub const NQN: &str = "nqn.2026-11.io.csdstore:spread";
/// Size of the drive's memory namespace, bytes.
pub const MEMORY_BYTES: u64 = 64 << 20;

/// Connects a host with one I/O queue.
pub async fn connect(address: &Address) -> Controller {
    let options = Options { io_queues: 1, entries: 16, ..Options::default() };
    Controller::connect(address, &options).await.expect("connects")
}

/// Returns the number of cores that the newest execution of the log worked on.
async fn cores_told(compute: &Compute) -> u16 {
    compute.executions().await.unwrap().1[0].cores()
}

/// Runs every case on 0 to 5 cores of a drive that has `cores`.
pub async fn equal_everywhere(address: &Address, cores: u16) {
    let controller = connect(address).await;
    let compute = Compute::open(&controller, 5).unwrap();
    cases::prepare(&controller).await;
    for case in cases::all() {
        let expected = run(&controller, &compute, &case, 1).await;
        for asked in [0, 2, 3, 4, 5] {
            let found = run(&controller, &compute, &case, asked).await;
            assert!(found == expected, "{}, {asked} cores: {:?}", case.name, found.0);
            let working = asked.clamp(1, cores).min(case.most);
            let told = cores_told(&compute).await;
            assert_eq!(told, working, "{}: {asked} of {cores} cores", case.name);
        }
    }
}

/// Returns the result of a case, and the bytes that it writes.
async fn run(
    controller: &Controller,
    compute: &Compute,
    case: &Case,
    cores: u16,
) -> (Result<u64, Option<Status>>, Vec<u8>) {
    let memory = Memory::open(controller, MEMORY_NSID).unwrap();
    let kv = Kv::open(controller, 2).unwrap();
    let execution = Execution { cores, ..case.execution.clone() };
    if let Output::Memory { start, bytes, .. } = execution.output {
        let stale = csd_reactor::Buffer::from_slice(&vec![0xEE; bytes as usize + 64]);
        memory.write(start, vec![stale]).await.unwrap();
    }
    let result = compute.execute(case.index, &execution).await;
    let result = result.map_err(|error| error.status());
    let mut written = Vec::new();
    match execution.output {
        Output::Completion => {}
        Output::Memory { start, bytes, .. } if result.is_ok() => {
            written = memory.read(start, bytes as usize + 64).await.unwrap().to_vec();
        }
        Output::Memory { .. } => {}
        Output::KvChunks { prefix, .. } => {
            for key in kv.list_all(&prefix).await.unwrap() {
                let value = kv.retrieve(&key, 1 << 20).await.unwrap().unwrap();
                if result.is_ok() {
                    written.extend_from_slice(key.as_bytes());
                    written.extend_from_slice(&value);
                }
                kv.delete(&key).await.unwrap();
            }
        }
    }
    (result, written)
}

/// Returns a long execution of count: `sources` times the whole memory.
pub fn long(sources: usize, cores: u16) -> Execution {
    let bytes = u32::try_from(MEMORY_BYTES).unwrap();
    let memory = SourceData::Memory { nsid: MEMORY_NSID, start: 0, bytes };
    let sources = vec![memory.into(); sources];
    let parameters = cases::count_parameters(7);
    let output = Output::Completion;
    Execution {
        program: 1,
        output,
        sources,
        inline: vec![],
        digests: None,
        parameters,
        serial: false,
        cores,
    }
}

/// Returns a long execution of verify: `sources` times the whole memory.
fn verify(sources: usize, cores: u16, unroll: u8) -> Execution {
    let parameters = cases::verify_parameters(4096, unroll, false);
    Execution { program: 5, parameters, ..long(sources, cores) }
}

/// Verifies with fixed numbers of cores and as the drive likes. Returns the times, the drive's own
/// last, ns.
pub async fn verify_times(address: &Address, sources: usize, cores: u16) -> Vec<u64> {
    let controller = connect(address).await;
    let compute = Compute::open(&controller, 5).unwrap();
    let fixed = (1..=cores).map(|cores| verify(sources, cores, 1));
    let mut times = Vec::new();
    let mut digest = None;
    // The drive's own choice is known once it has worked.
    for execution in fixed.chain([verify(sources, u16::MAX, 0), verify(sources, u16::MAX, 0)]) {
        let began = now();
        let result = compute.execute(4, &execution).await.unwrap();
        assert_eq!(*digest.get_or_insert(result), result, "{} cores", execution.cores);
        times.push(now().ns() - began.ns());
    }
    assert_eq!(cores_told(&compute).await, cores);
    times
}

/// Reads and writes memory until `until` is over: commands of a host, as many at once as its queue
/// takes.
pub async fn commands(address: &Address, until: Duration) {
    let controller = connect(address).await;
    let busy = (0..12).map(|_| {
        let memory = Memory::open(&controller, MEMORY_NSID).unwrap();
        spawn(Class::Foreground, async move {
            loop {
                memory.read(0, 64 << 10).await.unwrap();
            }
        })
    });
    let busy: Vec<_> = busy.collect();
    csd_reactor::sleep(until).await;
    drop(busy);
}

/// Aborts a long execution while it runs on all cores.
pub async fn abort(address: &Address, sources: usize) {
    let controller = connect(address).await;
    let compute = Compute::open(&controller, 5).unwrap();
    let running = {
        let compute = compute.clone();
        spawn(Class::Foreground, async move { compute.execute(0, &long(sources, 4)).await })
    };
    // The test does not know its identifier: it tries all until one is that of a command that could
    // be aborted.
    let aborted = timeout(Duration::from_secs(600), async {
        for cid in (0..16).cycle() {
            let mut sqe = Sqe::new(0x08, 0);
            sqe.set_cdw10(1 | cid << 16);
            let reply = controller.admin(sqe, &[], 0).await.unwrap();
            if reply.result & 1 == 0 {
                return;
            }
        }
    });
    aborted.await.expect("it is found");
    let error = running.await.unwrap_err();
    assert_eq!(error.status(), Some(Status::ABORT_REQUESTED));
}

/// Begins a long execution, and disconnects.
pub async fn leave(address: &Address, sources: usize, after: Duration) {
    let controller = connect(address).await;
    let compute = Compute::open(&controller, 5).unwrap();
    let running = async move { compute.execute(0, &long(sources, 4)).await };
    let left = timeout(after, running).await;
    assert!(left.is_err(), "it ended before: {left:?}");
}
