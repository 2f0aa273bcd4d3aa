//! Tests of Identify's data, read back.

use super::*;

#[test]
fn the_command_set_descriptor_is_found_behind_others() {
    let mut data = Vec::new();
    push_descriptor(&mut data, DESCRIPTOR_NGUID, &[9; 16]);
    push_descriptor(&mut data, DESCRIPTOR_CSI, &[1]);
    assert_eq!(data.len(), 20 + 5);
    data.resize(IDENTIFY_BYTES, 0);
    assert_eq!(descriptor_csi(&data), Csi::KV);
    assert_eq!(descriptor_nguid(&data), [9; 16]);
    assert_eq!(descriptor_nguid(&data[20..]), [0; 16]);
    assert_eq!(descriptor_csi(&[0; 64]), Csi::NVM);
    assert_eq!(descriptor_csi(&[2, 255, 0, 0, 1]), Csi::NVM);
}

#[test]
fn a_namespace_has_the_format_that_flbas_names() {
    let mut data = [0; 4096];
    let formats = [(0u32, 9u32), (2, 12), (15, 13), (18, 14), (63, 16)];
    for (index, lbads) in formats {
        let at = 128 + 4 * index as usize;
        data[at..at + 4].copy_from_slice(&(lbads << 16 | index).to_le_bytes());
    }
    let mut namespace = IdentifyNamespace::from_bytes(data);
    for (nlbaf, flbas, wanted) in [
        (0, 0, 0),
        (2, 2, 2),
        (2, 0x12, 2),
        (15, 0x0F, 15),
        (15, 0x22, 2),
        (18, 0x22, 18),
        (63, 0x7F, 63),
    ] {
        let format = namespace.set_nlbaf(nlbaf).set_flbas(flbas).format();
        assert_eq!(format.ms(), wanted, "NLBAF {nlbaf}, FLBAS {flbas:#x}");
        assert!(formats.contains(&(wanted, format.lbads())));
    }
}

#[test]
fn namespace_lists_end_at_zero() {
    let data = namespace_list([1, 2, 5].into_iter());
    assert_eq!(data.len(), IDENTIFY_BYTES);
    assert_eq!(parse_namespace_list(&data), [1, 2, 5]);
}
