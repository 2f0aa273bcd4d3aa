//! Commands of the tunnel that are refused, by whom, and what a drive announces of it.

use std::time::Duration;

use csd_drive::Resources;
use csd_drive::tunnel::{Options as TunnelOptions, RECEIVES_MAX};
use csd_initiator::Controller;
use csd_nvme::capsule::Sqe;
use csd_nvme::log::{EFFECTS_BYTES, LogId, get_log_page};
use csd_nvme::opcode::{Cp, Csi};
use csd_nvme::status::Status;
use csd_nvme::vendor::NSID_COMPUTE;
use csd_nvme::vendor::tunnel::{DATA_BYTES_MAX, receive, send};
use csd_reactor::{now, sleep};

use crate::inside::{Doors, inside, memory, outside};
use crate::tunnel::{
    GUEST, HOST, Line, connected, doors, frames, log, numbers, options, packet, until_inside,
};

const OTHER: &str = "nqn.2026-11.io.csdstore:other-host";

async fn refused(controller: &Controller, sqe: Sqe, data: Vec<u8>, room: u32) -> Option<Status> {
    let mut line = Line::default();
    line.begin(controller, sqe, data, room).await;
    line.next().await.err().and_then(|error| error.status())
}

#[test]
fn unsound_frames_strangers_and_a_65th_receive_are_refused() {
    let doors = doors(3);
    doors.serve((&memory(), true), None, |_| async {
        let guest = connected(&inside(), GUEST).await;
        let mut got = Vec::new();
        while !got.contains(&7) {
            let mut line = Line::default();
            line.receive(&guest).await;
            got.extend(numbers(&line.next().await.unwrap()));
        }
        assert_eq!(got, [7], "of a list that is refused nothing is delivered");
        std::future::pending().await
    });
    doors.host(|| async {
        let host = connected(&outside(), HOST).await;
        assert_eq!(host.identity().icsvscc() & 1, 1);
        until_inside(&host).await;
        let good = frames([&packet(1, 40)]);
        let mut no_ip = good.clone();
        no_ip[14] = 0x15;
        let mut bad = vec![good[..good.len() - 4].to_vec(), no_ip];
        bad.push([&good[..], &[200, 0, 0, 0]].concat());
        bad.push([&good[..], &[10, 0, 0, 0], &[0; 12]].concat());
        for list in bad {
            let bytes = u32::try_from(list.len()).unwrap();
            let status = refused(&host, send(NSID_COMPUTE, bytes), list, 0).await;
            assert_eq!(status, Some(Status::INVALID_FIELD));
        }
        let short = receive(NSID_COMPUTE, 4096);
        assert_eq!(refused(&host, short, vec![], 4096).await, Some(Status::INVALID_FIELD));
        // Other hosts, known and unknown.
        let stranger = connected(&outside(), "nqn.2026-11.io.csdstore:stranger").await;
        let sqe = send(NSID_COMPUTE, u32::try_from(good.len()).unwrap());
        assert_eq!(refused(&stranger, sqe, good, 0).await, Some(Status::OPERATION_DENIED));
        let mut line = Line::default();
        for _ in 0..RECEIVES_MAX {
            line.receive(&host).await;
        }
        let begun = now();
        let room = DATA_BYTES_MAX;
        let sqe = receive(NSID_COMPUTE, room);
        assert_eq!(refused(&host, sqe, vec![], room).await, Some(Status::OPERATION_DENIED));
        assert!(begun.elapsed() < Duration::from_secs(1));
        // Receives without packets end empty.
        assert_eq!(line.next().await.unwrap(), []);
        let waited = begun.elapsed();
        assert!((4..6).contains(&waited.as_secs()), "{waited:?}");
        let sent = frames([&packet(7, 100)]);
        let sqe = send(NSID_COMPUTE, u32::try_from(sent.len()).unwrap());
        assert_eq!(refused(&host, sqe, sent, 0).await, None);
        let ends = log(&host).await;
        assert_eq!((ends[0].refused(), ends[0].sent_packets()), (2, 1));
        assert_eq!(ends[0].host_nqn(), HOST);
    });
}

#[test]
fn a_second_host_is_refused_until_the_first_one_is_gone() {
    let mut doors = doors(10);
    let hosts = vec![HOST.to_owned(), OTHER.to_owned()];
    let tunnel = Some(TunnelOptions { hosts, ..options() });
    doors.resources = Resources { tunnel, ..Resources::default() };
    doors.serve((&memory(), true), None, |_| async {});
    doors.host(|| async {
        let list = || frames([&packet(1, 40)]);
        let sqe = send(NSID_COMPUTE, u32::try_from(list().len()).unwrap());
        let (host, other) = (connected(&outside(), HOST).await, connected(&outside(), OTHER).await);
        assert_eq!(refused(&host, sqe, list(), 0).await, None);
        assert_eq!(refused(&other, sqe, list(), 0).await, Some(Status::OPERATION_DENIED));
        let room = DATA_BYTES_MAX;
        let denied = refused(&other, receive(NSID_COMPUTE, room), vec![], room).await;
        assert_eq!(denied, Some(Status::OPERATION_DENIED));
        let end = log(&other).await[0];
        assert_eq!((end.host_nqn(), end.refused(), end.takeovers()), (HOST.to_owned(), 2, 0));
        // The last clone of the controller: its connections close.
        drop(host);
        while log(&other).await[0].present() == 1 {
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(refused(&other, sqe, list(), 0).await, None);
        let end = log(&other).await[0];
        assert_eq!((end.host_nqn(), end.present(), end.takeovers()), (OTHER.to_owned(), 1, 0));
    });
}

/// Returns what log page 05h says of Send and Receive, and log page 00h of the tunnel's own.
async fn announced(host: &Controller) -> [bool; 3] {
    let bytes = u32::try_from(EFFECTS_BYTES).unwrap();
    let effects = get_log_page(LogId::EFFECTS, 0, Csi::CP, 0, bytes);
    let effects = host.admin(effects, &[], bytes).await.unwrap().data;
    let pages = get_log_page(LogId::SUPPORTED, 0, Csi::NVM, 0, 1024);
    let pages = host.admin(pages, &[], 1024).await.unwrap().data;
    let io = |command: Cp| effects[1024 + 4 * usize::from(command.0)] & 1 == 1;
    let tunnel = pages[4 * usize::from(LogId::TUNNEL.0)] & 1 == 1;
    [io(Cp::TUNNEL_SEND), io(Cp::TUNNEL_RECEIVE), tunnel]
}

#[test]
fn log_pages_announce_commands_and_log_of_the_tunnel_where_it_is() {
    for (is_there, doors) in [(true, doors(11)), (false, Doors::new(11))] {
        doors.serve((&memory(), true), None, |_| async {});
        doors.host(move || async move {
            let host = connected(&outside(), HOST).await;
            assert_eq!(announced(&host).await, [is_there; 3]);
        });
    }
}

#[test]
fn a_drive_without_a_tunnel_has_none_of_it() {
    let doors = Doors::new(4);
    doors.serve((&memory(), true), None, |_| async {});
    doors.host(|| async {
        let host = connected(&outside(), HOST).await;
        assert_eq!(host.identity().icsvscc(), 0);
        let room = DATA_BYTES_MAX;
        let status = refused(&host, receive(NSID_COMPUTE, room), vec![], room).await;
        assert_eq!(status, Some(Status::INVALID_OPCODE));
        let sqe = get_log_page(LogId::TUNNEL, NSID_COMPUTE, Csi::CP, 0, 64);
        let page = host.admin(sqe, &[], 64).await.map(drop).map_err(|error| error.status());
        assert_eq!(page, Err(Some(Status::INVALID_LOG_PAGE)));
    });
}
