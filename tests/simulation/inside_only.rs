//! Feature C0h, Inside Only: while the drive's own operating system has a file system on the
//! blocks, no host changes them, over restarts of the drive too.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use csd_client::{Retry, Volume};
use csd_initiator::{Address, Controller, Error, Options};
use csd_nvme::NSID_ALL;
use csd_nvme::feature::{FeatureId, Select, get_features, set_features};
use csd_nvme::identify::{Cns, IDENTIFY_BYTES, IdentifyNamespace, identify};
use csd_nvme::log::{LogId, get_log_page};
use csd_nvme::nvm::{self, Extent};
use csd_nvme::opcode::Csi;
use csd_nvme::status::Status;
use csd_nvme::vendor::{NSID_BLOCK, NSID_KV};
use csd_reactor::{Buffer, Class, random_u64, sleep, spawn};

use crate::LIMIT;
use crate::inside::{Doors, inside, memory, outside};

const PROTECTED: Option<Status> = Some(Status::NAMESPACE_WRITE_PROTECTED);
const BLOCK: usize = 4096;
const EXTENT: Extent = Extent { slba: 3, blocks: 1 };

async fn connected(address: &Address) -> Controller {
    loop {
        match Controller::connect(address, &Options::default()).await {
            Ok(controller) => return controller,
            Err(_) => sleep(Duration::from_millis(5)).await,
        }
    }
}

async fn volume(address: &Address) -> Volume {
    Volume::connect(address, &Options::default(), Retry::default()).await.unwrap()
}

async fn set(controller: &Controller, nsid: u32, value: u32) -> Option<Status> {
    let sqe = set_features(FeatureId::INSIDE_ONLY, nsid, value);
    controller.admin(sqe, &[], 0).await.err().and_then(|error| error.status())
}

async fn get(controller: &Controller, nsid: u32, select: Select) -> Result<u64, Option<Status>> {
    let sqe = get_features(FeatureId::INSIDE_ONLY, nsid, select);
    let reply = controller.admin(sqe, &[], 0).await;
    reply.map(|reply| reply.result).map_err(|error| error.status())
}

/// Returns NSATTR of the block namespace.
async fn attributes(controller: &Controller) -> u8 {
    let sqe = identify(Cns::NAMESPACE, NSID_BLOCK, Csi::NVM);
    let reply = controller.admin(sqe, &[], u32::try_from(IDENTIFY_BYTES).unwrap()).await.unwrap();
    IdentifyNamespace::parse(&reply.data).unwrap().nsattr()
}

/// Returns the status of every command that changes blocks.
async fn changes(controller: &Controller) -> Vec<Option<Status>> {
    let data = |bytes: &[u8]| vec![Buffer::from_slice(bytes)];
    let (copy, sources) = nvm::copy(NSID_BLOCK, &[Extent { slba: 9, blocks: 1 }], EXTENT.slba);
    let (trim, ranges) = nvm::deallocate(NSID_BLOCK, &[EXTENT]);
    let mut statuses = Vec::new();
    for (sqe, payload) in [
        (nvm::write(NSID_BLOCK, EXTENT, false), data(&[7; BLOCK])),
        (nvm::write(NSID_BLOCK, EXTENT, true), data(&[7; BLOCK])),
        (nvm::write_zeroes(NSID_BLOCK, EXTENT, false), Vec::new()),
        (nvm::write_zeroes(NSID_BLOCK, EXTENT, true), Vec::new()),
        (copy, data(&sources)),
        (trim, data(&ranges)),
    ] {
        let done: Result<_, Error> = controller.submit(sqe, payload, 0).await;
        statuses.push(done.err().and_then(|error| error.status()));
    }
    statuses
}

/// Serves a drive, and runs `guest` on its machine to its end.
fn with_guest<F: Future<Output = ()> + 'static>(
    doors: &Doors,
    (media, is_new): (&csd_kvlog::media::Media, bool),
    guest: impl Fn() -> F + 'static,
) {
    let (done, guest) = (Rc::new(Cell::new(false)), Rc::new(guest));
    let ended = Rc::clone(&done);
    doors.serve((media, is_new), None, move |_| {
        let (ended, guest) = (Rc::clone(&ended), Rc::clone(&guest));
        async move {
            guest().await;
            ended.set(true);
        }
    });
    let waited = doors.world.run_until(|_| done.get(), LIMIT);
    waited.unwrap_or_else(|stuck| panic!("the guest: {stuck}"));
}

#[test]
fn only_the_inside_changes_blocks_while_it_says_so() {
    let (doors, media) = (Doors::new(4), memory());
    with_guest(&doors, (&media, true), || async {
        let (host, guest) = (connected(&outside()).await, connected(&inside()).await);
        assert_eq!(changes(&host).await, [None; 6]);
        assert_eq!(set(&host, NSID_BLOCK, 1).await, Some(Status::FEATURE_NOT_CHANGEABLE));
        assert_eq!(set(&guest, NSID_BLOCK, 2).await, Some(Status::INVALID_FIELD));
        assert_eq!(set(&guest, NSID_KV, 1).await, Some(Status::INVALID_NAMESPACE));
        assert_eq!(get(&host, NSID_BLOCK, Select::CURRENT).await, Ok(0));
        assert_eq!(
            get(&host, NSID_KV, Select::CURRENT).await,
            Err(Some(Status::INVALID_NAMESPACE))
        );
        assert_eq!(get(&host, NSID_BLOCK, Select::CAPABILITIES).await, Ok(0b110));
        assert_eq!(set(&guest, NSID_BLOCK, 1).await, None);
        for select in [Select::CURRENT, Select::SAVED] {
            assert_eq!(get(&host, NSID_BLOCK, select).await, Ok(1), "{select:?}");
        }
        assert_eq!(get(&host, NSID_BLOCK, Select::DEFAULT).await, Ok(0));
        assert_eq!(changes(&host).await, [PROTECTED; 6]);
        assert_eq!(changes(&guest).await, [None; 6]);
        assert_eq!((attributes(&host).await, attributes(&guest).await), (1, 0));
        let read = host.submit(nvm::read(NSID_BLOCK, EXTENT), Vec::new(), 4096).await;
        assert!(read.is_ok(), "hosts read as before");
        let health = get_log_page(LogId::SMART, NSID_ALL, Csi::NVM, 0, 512);
        let health = host.admin(health, &[], 512).await.unwrap();
        assert_eq!(health.data[0], 0, "the medium is in good health");
    });
    // A restart is no end of it: the file system may be mounted all the time.
    doors.world.crash(doors.drive);
    with_guest(&doors, (&media, false), || async {
        let (host, guest) = (connected(&outside()).await, connected(&inside()).await);
        assert_eq!(changes(&host).await, [PROTECTED; 6]);
        assert_eq!(set(&guest, NSID_BLOCK, 0).await, None);
        assert_eq!(changes(&host).await, [None; 6]);
        assert_eq!(attributes(&host).await, 0);
    });
    doors.world.crash(doors.drive);
    with_guest(&doors, (&media, false), || async {
        let host = connected(&outside()).await;
        assert_eq!(changes(&host).await, [None; 6], "the end of it is kept as well");
        let effects = get_log_page(LogId::FEATURES, 0, Csi::NVM, 0, 1024);
        let effects = host.admin(effects, &[], 1024).await.unwrap();
        assert_eq!(effects.data[0xC0 * 4] & 1, 1, "the feature is announced");
    });
}

#[test]
fn when_it_is_answered_no_change_of_a_host_is_under_way() {
    for seed in 100..120 {
        let doors = Doors::new(seed);
        with_guest(&doors, (&memory(), true), || async {
            let guest = connected(&inside()).await;
            let writers: Vec<_> = (0..8u8)
                .map(|number| {
                    spawn(Class::Foreground, async move {
                        let host = volume(&outside()).await;
                        let mut round = 0u64;
                        // Until the first refusal.
                        while host
                            .write(u64::from(number) << 20, &vec![number; 256 << 10])
                            .await
                            .is_ok()
                        {
                            round += 1;
                        }
                        host.disconnect().await;
                        round
                    })
                })
                .collect();
            sleep(Duration::from_micros(20_000 + random_u64() % 30_000)).await;
            assert_eq!(set(&guest, NSID_BLOCK, 1).await, None);
            let volume = volume(&inside()).await;
            // The inside writes its own bytes; none of an older write follows them.
            for number in 0..8u64 {
                volume.write(number << 20, &vec![0xEE; 256 << 10]).await.unwrap();
            }
            let mut rounds = 0;
            for writer in writers {
                rounds += writer.await;
            }
            assert!(rounds > 0, "hosts wrote before");
            for number in 0..8u64 {
                let bytes = volume.read(number << 20, 256 << 10).await.unwrap();
                assert!(bytes.iter().all(|byte| *byte == 0xEE), "writer {number}");
            }
        });
    }
}
