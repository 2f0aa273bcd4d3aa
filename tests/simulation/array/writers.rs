//! Two hosts write to a new array at the same time: each registers the lives of the drives.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use csd_kernels::ElementType;
use csd_store::array::{Array, GUARDED};
use csd_store::object::{self, PutOptions};
use csd_store::source::Source;

use super::{Lane, plan};
use crate::seeds;

/// Time in which a host connects to six drives, reads their records and puts, microseconds.
const PUT_US: u64 = 5000;

/// Connects and puts an object; no drive may be said to be without its vote.
async fn put(name: String, is_done: Rc<Cell<bool>>) {
    let array = Array::connect_with(&plan(), &csd_initiator::Options::default(), GUARDED).await;
    let bytes = Box::new(io::Cursor::new(vec![7; 100_000]));
    let options = PutOptions::new(name);
    let source = Source::raw("bytes", bytes, ElementType::Bytes);
    let progress = object::Progress::none();
    let stored = object::put(&array, source, &options, &progress).await.expect("puts");
    assert!(stored.warnings.is_empty(), "{:?}", stored.warnings);
    is_done.set(true);
}

#[test]
fn a_writer_that_registers_drives_while_another_looks_at_them_accuses_none() {
    for seed in seeds() {
        let lane = Lane::new(seed, GUARDED);
        lane.start_drives();
        let start = |host: usize| {
            let is_done = Rc::new(Cell::new(false));
            let told = Rc::clone(&is_done);
            let put = move |_| put(format!("of-{host}"), Rc::clone(&told));
            lane.world.start(lane.hosts[host], put);
            is_done
        };
        // At any step the first host waits for one drive, while the second registers all of them.
        let first = start(0);
        lane.world.run_for(Duration::from_micros(lane.draw(0..PUT_US)));
        let drive = lane.drives[lane.draw_drive()].machine;
        lane.world.partition(lane.hosts[0], drive);
        lane.world.run_for(Duration::from_millis(20));
        let second = start(1);
        lane.wait("the second host", || second.get());
        lane.world.heal(lane.hosts[0], drive);
        lane.wait("the first host", || first.get());
    }
    println!("array, two new hosts: {0} seeds, {0} partitions", seeds().count());
}
