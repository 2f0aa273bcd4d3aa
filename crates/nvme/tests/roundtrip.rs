//! Round trips: a drive parses every command that a host encodes, for any values; and no 64 bytes
//! make a parser panic.

use csd_nvme::capsule::{Cqe, Sqe};
use csd_nvme::kv::{self, Key, KeyList};
use csd_nvme::log::GetLogPage;
use csd_nvme::nvm::{self, Extent};
use csd_nvme::opcode::Csi;
use csd_nvme::status::Status;
use csd_nvme::vendor::execute::{DIGESTS_MAX, Digests, Execution, Output, Source, SourceData};
use csd_nvme::{compute, fabrics, log, memory};
use proptest::prelude::*;

fn key() -> impl Strategy<Value = Key> {
    prop::collection::vec(any::<u8>(), 1..=16)
        .prop_map(|bytes| Key::new(&bytes).expect("1 to 16 bytes"))
}

fn source() -> impl Strategy<Value = Source> {
    let chunks = (any::<u32>(), any::<[u8; 12]>(), 0u32..1 << 20, 1u32..20, 1u32..9);
    let blocks = (any::<u32>(), any::<u64>(), 0u32..4096, 1u32..1 << 24);
    let memory = (any::<u32>(), any::<u64>(), 1u32..1 << 24);
    let tail = (any::<u32>(), any::<[u8; 12]>(), any::<u32>(), 1u32..);
    let data = prop_oneof![
        tail.prop_map(|(nsid, prefix, number, skip)| SourceData::KvTail {
            nsid,
            prefix,
            number,
            skip
        }),
        (1u32..50).prop_map(|bytes| SourceData::Inline { bytes }),
        (any::<u32>(), prop::option::of(key()))
            .prop_map(|(nsid, from)| SourceData::Keys { nsid, from }),
        chunks.prop_map(|(nsid, prefix, first, count, stride)| SourceData::KvChunks {
            nsid,
            prefix,
            first,
            count,
            stride
        }),
        blocks.prop_map(|(nsid, slba, skip, bytes)| SourceData::Blocks { nsid, slba, skip, bytes }),
        memory.prop_map(|(nsid, start, bytes)| SourceData::Memory { nsid, start, bytes }),
    ];
    (0u8..8, data).prop_map(|(stream, data)| data.on(stream))
}

fn output() -> impl Strategy<Value = Output> {
    let memory = (any::<u32>(), any::<u64>(), any::<u32>());
    let values = (any::<u32>(), any::<[u8; 12]>(), any::<u32>(), 1u32.., 1u32..);
    prop_oneof![
        Just(Output::Completion),
        memory.prop_map(|(nsid, start, bytes)| Output::Memory { nsid, start, bytes }),
        values.prop_map(|(nsid, prefix, first, stride, chunk_bytes)| Output::KvChunks {
            nsid,
            prefix,
            first,
            stride,
            chunk_bytes
        }),
    ]
}

proptest! {
    #[test]
    fn block_commands(nsid in any::<u32>(), slba in any::<u64>(), blocks in 1u32..=65536,
                      fua in any::<bool>()) {
        let extent = Extent { slba, blocks };
        let read = nvm::read(nsid, extent);
        prop_assert_eq!(read.nsid(), nsid);
        prop_assert_eq!(nvm::Command::parse(&read), Ok(nvm::Command::Read(extent)));
        let write = nvm::Command::parse(&nvm::write(nsid, extent, fua));
        prop_assert_eq!(write, Ok(nvm::Command::Write { extent, fua }));
    }

    #[test]
    fn key_value_commands(nsid in any::<u32>(), key in key(), size in any::<u32>()) {
        use kv::Command::{Delete, Exist, List, Retrieve, Store};
        let parse = |sqe: Sqe| kv::Command::parse(&sqe);
        let store = kv::store(nsid, &key, size, kv::STORE_IF_ABSENT);
        prop_assert_eq!(parse(store), Ok(Store { key, size, options: kv::STORE_IF_ABSENT }));
        prop_assert_eq!(parse(kv::retrieve(nsid, &key, size, 0)), Ok(Retrieve { key, size }));
        let list = List { from: Some(key), size };
        prop_assert_eq!(parse(kv::list(nsid, Some(&key), size)), Ok(list));
        prop_assert_eq!(parse(kv::delete(nsid, &key)), Ok(Delete(key)));
        prop_assert_eq!(parse(kv::exist(nsid, &key)), Ok(Exist(key)));
    }

    /// Hosts fill dwords 12 and 13, which are reserved: a cache's has the value's length in blocks
    /// in dword 12, as a Write has.
    #[test]
    fn key_value_commands_with_reserved_dwords(key in key(), size in any::<u32>(),
                                               dwords in any::<[u32; 2]>()) {
        let commands = [
            kv::store(2, &key, size, kv::STORE_IF_ABSENT),
            kv::retrieve(2, &key, size, 0),
            kv::list(2, Some(&key), size),
            kv::delete(2, &key),
            kv::exist(2, &key),
        ];
        for command in commands {
            let mut filled = command;
            filled.set_cdw12(dwords[0]).set_cdw13(dwords[1]);
            prop_assert_eq!(kv::Command::parse(&filled), kv::Command::parse(&command));
        }
    }

    #[test]
    fn key_lists(keys in prop::collection::vec(key(), 0..40)) {
        let mut list = KeyList::new(4096).expect("room for the count");
        prop_assert!(keys.iter().all(|key| list.push(key)));
        prop_assert_eq!(KeyList::parse(&list.finish()), Some(keys));
    }

    #[test]
    fn executions(program in any::<u64>(), output in output(), serial in any::<bool>(),
                  cores in any::<u16>(),
                  digests in prop::option::of((4096u32..=8 << 20, any::<u8>())),
                  sources in prop::collection::vec(source(), 1..8),
                  parameters in prop::collection::vec(any::<u8>(), 0..100)) {
        let inline_bytes = sources.iter().map(|source| match source.data {
            SourceData::Inline { bytes } => bytes as usize,
            _ => 0,
        });
        let inline = (0..inline_bytes.sum()).map(|at| at.to_le_bytes()[0]).collect();
        let digests = digests.map(|(unit_bytes, streams)| {
            let none = Digests { unit_bytes, streams, sums: vec![] };
            let needed = u32::try_from(none.needed(&sources)).expect("few");
            Digests { sums: (0..needed).collect(), ..none }
        });
        let few = digests.as_ref().is_none_or(|digests| digests.sums.len() <= DIGESTS_MAX);
        prop_assume!(few);
        let execution =
            Execution { program, output, sources, inline, digests, parameters, serial, cores };
        prop_assert_eq!(Execution::parse(&execution.encode()), Ok(execution));
    }

    #[test]
    fn fabrics_and_admin(qid in any::<u16>(), entries in 1u16.., kato in any::<u32>(),
                         offset in any::<u64>(), dwords in 1u32..1 << 20, csi in any::<u8>()) {
        let sqe = fabrics::connect(qid, entries, kato, 4);
        let connect = fabrics::Connect::from_bytes(*sqe.as_bytes());
        prop_assert_eq!((connect.qid(), connect.sqsize()), (qid, entries - 1));
        prop_assert_eq!((connect.kato(), connect.cattr()), (kato, 4));
        let page = log::get_log_page(log::LogId::SMART, 1, Csi(csi), offset, dwords * 4);
        let page = GetLogPage::from_bytes(*page.as_bytes());
        prop_assert_eq!((page.bytes(), page.offset()), (u64::from(dwords) * 4, offset));
        prop_assert_eq!(page.csi(), csi);
    }

    #[test]
    fn completions(result in any::<u64>(), status in 0u16..0x800, cid in any::<u16>()) {
        let mut cqe = Cqe::zeroed();
        cqe.set_result(result).set_status(Status(status)).set_cid(cid);
        prop_assert_eq!((cqe.result(), cqe.status(), cqe.cid()), (result, Status(status), cid));
    }

    #[test]
    fn no_bytes_panic_a_parser(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Execution::parse(&bytes);
        let _ = KeyList::parse(&bytes);
        let _ = compute::parse_program_list(&bytes);
        if let Some(sqe) = Sqe::parse(&bytes) {
            let _ = nvm::Command::parse(&sqe);
            let _ = kv::Command::parse(&sqe);
            let _ = compute::Command::parse(&sqe);
            let _ = memory::Command::parse(&sqe);
            let _ = memory::sources(bytes[0] & 7, &bytes);
        }
    }
}
