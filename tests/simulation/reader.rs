//! A host requests values and reads no answer while others replace them: the log is cleaned all the
//! same, and each late answer is one version of the requested value, or an error.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use csd_initiator::{Address, Controller, Kv, Options};
use csd_reactor::{Buffer, Class, Stream, sleep, spawn};
use csd_tests::wire::Command;

use crate::Simulation;
use crate::stalled::{capsule, enabled, queue};

/// Number of values: more than half of the log.
const VALUES: u8 = 160;
const VALUE_BYTES: usize = 256 << 10;
/// Number of times that all of them are replaced.
const ROUNDS: u8 = 3;
const COMMAND_INTERRUPTED: u16 = 0x21;

fn key(number: u8) -> csd_nvme::kv::Key {
    csd_nvme::kv::Key::new(&[number + 1]).unwrap()
}

/// Returns the byte that version `round` of a value consists of.
fn byte(number: u8, round: u8) -> u8 {
    number.wrapping_mul(7).wrapping_add(round)
}

async fn store_all(kv: &Kv, round: u8) {
    for number in 0..VALUES {
        let value = vec![Buffer::from_slice(&vec![byte(number, round); VALUE_BYTES])];
        kv.store(&key(number), value, 0).await.expect("there is room");
    }
}

/// Receives until every command is answered; returns the number of values.
async fn take_all(stream: &Stream) -> usize {
    let mut data: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
    let (mut answered, mut whole) = (0, 0);
    while answered < VALUES {
        let mut common = [0; 8];
        stream.recv_exact(&mut common).await.expect("a PDU");
        let length = u32::from_le_bytes(common[4..8].try_into().unwrap()) as usize;
        let mut rest = vec![0; length - 8];
        stream.recv_exact(&mut rest).await.expect("all of it");
        let half = |at: usize| u16::from_le_bytes([rest[at - 8], rest[at - 7]]);
        if common[0] == 0x07 {
            data.entry(half(8)).or_default().extend_from_slice(&rest[16..]);
            continue;
        }
        let (cid, status) = (half(20), half(22) >> 1 & 0x7FF);
        answered += 1;
        if status == COMMAND_INTERRUPTED {
            continue;
        }
        let versions = (0..=ROUNDS).map(|round| byte(u8::try_from(cid).unwrap(), round));
        let got = data.remove(&cid).unwrap_or_default();
        assert_eq!((status, got.len()), (0, VALUE_BYTES), "command {cid}");
        let is_one = |version| got.iter().all(|byte| *byte == version);
        assert!(versions.into_iter().any(is_one), "no version of {cid}, or several");
        whole += 1;
    }
    whole
}

async fn work(address: Address) -> usize {
    let options = Options { command_timeout: Duration::from_secs(100), ..Options::default() };
    let controller = Controller::connect(&address, &options).await.expect("a host");
    let kv = Rc::new(Kv::open(&controller, 2).expect("a kv namespace"));
    store_all(&kv, 0).await;
    let (_admin, cntlid) = enabled(&address).await;
    let (io, _) = queue(&address, 1, cntlid, 256).await;
    for number in 0..VALUES {
        let size = u32::try_from(VALUE_BYTES).unwrap();
        let mut retrieve = Command::new(0x02, 2).dword(10, size).byte(44, 1);
        retrieve = retrieve.byte(8, number + 1).byte(2, number);
        io.send_all(&capsule(retrieve, size, &[])).await.unwrap();
    }
    sleep(Duration::from_millis(100)).await;
    let writer = spawn(Class::Foreground, async move {
        for round in 1..=ROUNDS {
            store_all(&kv, round).await;
        }
    });
    writer.await;
    let whole = take_all(&io).await;
    controller.disconnect().await;
    whole
}

#[test]
fn values_that_a_host_does_not_take_are_cleaned_and_never_mixed() {
    // On a slow network the requests arrive only after the last writer: not on all of these.
    let whole: Vec<usize> = (0..3).map(whole_values).collect();
    println!("{whole:?} of {VALUES} values were sent as they were asked for");
    let beneath = whole.iter().filter(|whole| **whole < usize::from(VALUES));
    assert!(beneath.count() > 0, "the log was not cleaned beneath them");
}

fn whole_values(seed: u64) -> usize {
    let mut simulation = Simulation::new(seed);
    let ready = simulation.start_drive();
    simulation.wait("the drive", || ready.get());
    simulation.formatted = true;
    let done = simulation.on_host(|address, _| work(address));
    let ended = simulation.world.run_until(|_| done.borrow().is_some(), Duration::from_secs(900));
    ended.unwrap_or_else(|stuck| panic!("the host: {stuck}"));
    done.borrow_mut().take().expect("just seen")
}
