//! Namespaces of an array's drives, read and written beneath the array.

use csd_initiator::{Address, Block, Controller, Kv, Options};
use csd_reactor::block_on;

use crate::support::harness::Array;

/// Calls `body` with the objects' namespace of a drive.
pub(crate) fn on_objects<T: Send + 'static>(
    array: &Array,
    drive: usize,
    body: impl AsyncFnOnce(&Kv) -> T + Send + 'static,
) -> T {
    on_drive(array, drive, async move |controller: &Controller| {
        body(&Kv::open(controller, csd_store::array::OBJECTS_NSID).unwrap()).await
    })
}

/// Calls `body` with the block namespace of a drive.
pub(crate) fn on_blocks<T: Send + 'static>(
    array: &Array,
    drive: usize,
    body: impl AsyncFnOnce(&Block) -> T + Send + 'static,
) -> T {
    on_drive(array, drive, async move |controller: &Controller| {
        body(&Block::open(controller, csd_store::array::BLOCK_NSID).unwrap()).await
    })
}

fn on_drive<T: Send + 'static>(
    array: &Array,
    drive: usize,
    body: impl AsyncFnOnce(&Controller) -> T + Send + 'static,
) -> T {
    let url = array.url(drive);
    let address: Address = url.parse().unwrap();
    let done = block_on(&csd_reactor::Config::default(), move || async move {
        let controller = Controller::connect(&address, &Options::default()).await.unwrap();
        let told = body(&controller).await;
        controller.disconnect().await;
        told
    });
    done.unwrap()
}
