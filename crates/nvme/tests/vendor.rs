//! The table of vendor numbers is that of the documents, and complete.

#![allow(missing_docs, clippy::unwrap_used)]

use csd_nvme::feature::FeatureId;
use csd_nvme::log::LogId;
use csd_nvme::opcode::{Cp, Kv};
use csd_nvme::status::Status;
use csd_nvme::vendor::{Kind, TABLE};

const PAGE: &str = include_str!("../../../docs/internals/commands.md");

#[test]
fn the_documents_have_the_same_table() {
    let (_, table) = PAGE.split_once("## Vendor numbers").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    // Behind the heads of the columns.
    let found: Vec<&str> = rows.skip(1).collect();
    let expected = TABLE.map(|(kind, number, name)| {
        let number = match kind {
            Kind::Namespace => number.to_string(),
            Kind::Opcode | Kind::LogPage | Kind::Feature | Kind::ProgramType => {
                format!("{number:02X}h")
            }
            Kind::Status => format!("{number:03X}h"),
        };
        format!("{} | {number} | {name}", kind.name())
    });
    assert_eq!(found, expected);
}

#[test]
fn every_code_of_a_vendor_range_is_in_the_table() {
    let has = |kind, number| TABLE.iter().any(|row| (row.0, row.1) == (kind, number));
    let statuses = Status::TABLE.iter().filter(|(status, _)| status.0 >> 8 == 7);
    assert!(statuses.clone().all(|(status, _)| has(Kind::Status, status.0.into())));
    assert_eq!(statuses.count(), TABLE.iter().filter(|row| row.0 == Kind::Status).count());
    let logs = LogId::TABLE.iter().filter(|(log, _)| log.0 >= 0xC0);
    assert!(logs.clone().all(|(log, _)| has(Kind::LogPage, log.0.into())));
    let features = FeatureId::TABLE.iter().filter(|(id, _)| id.0 >= 0xC0);
    assert!(features.clone().all(|(id, _)| has(Kind::Feature, id.0.into())));
    assert_eq!(features.count(), TABLE.iter().filter(|row| row.0 == Kind::Feature).count());
    let of_kv = Kv::TABLE.iter().map(|(opcode, _)| opcode.0);
    let of_compute = Cp::TABLE.iter().map(|(opcode, _)| opcode.0);
    let opcodes = of_kv.chain(of_compute).filter(|opcode| *opcode >= 0x80);
    assert!(opcodes.clone().all(|opcode| has(Kind::Opcode, opcode.into())));
    assert_eq!(opcodes.count(), TABLE.iter().filter(|row| row.0 == Kind::Opcode).count());
}
