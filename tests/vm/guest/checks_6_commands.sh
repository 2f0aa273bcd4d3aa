# Discovery, and the commands that the standard leaves to a drive: ours says that it has them.

check discovery 40
check trim 60
check write_zeroes 60
check compare_command 40
check verify_command 40

oncs() { nvme id-ctrl "$(admin)" | field oncs; }

discovery() {
    expect_kernel 'nvme'
    local said
    said=$(nvme discover -t tcp -a "$HOST" -s "$PORT" -q "$HOST_NQN" -I "$HOST_ID" 2>&1) \
        || fail "$said"
    echo "$said"
    grep -q "subnqn: *$NQN" <<< "$said"
    grep -q 'trtype: *tcp' <<< "$said"
}

trim() {
    connect -i 1
    bit "$(oncs)" 2 || fail "the drive has no Dataset Management"
    write_and_compare 0 4
    blkdiscard -o 1048576 -l 2097152 "$(block)"
    dd if="$(block)" bs=256k count=4 iflag=direct status=none | cmp - <(head -c 1048576 /tmp/data)
    dd if="$(block)" bs=256k skip=12 count=4 iflag=direct status=none \
        | cmp - <(tail -c 1048576 /tmp/data)
    # What was discarded reads the same each time.
    dd if="$(block)" bs=256k skip=4 count=8 iflag=direct status=none > /tmp/first
    dd if="$(block)" bs=256k skip=4 count=8 iflag=direct status=none | cmp - /tmp/first
    mkfs.ext4 -q -F "$(block)"
    mount -o discard "$(block)" /tmp/mnt
    head -c 3000000 /dev/urandom > /tmp/mnt/file
    rm /tmp/mnt/file
    sync -f /tmp/mnt
    fstrim /tmp/mnt
    umount /tmp/mnt
    fsck.ext4 -f -n "$(block)"
}

write_zeroes() {
    connect -i 1
    bit "$(oncs)" 3 || fail "the drive has no Write Zeroes"
    write_and_compare 0 4
    nvme write-zeroes "$(block)" -n 1 -s $((1048576 / BLOCK)) -c $((1048576 / BLOCK - 1))
    dd if="$(block)" bs=256k skip=4 count=4 iflag=direct status=none \
        | cmp - <(head -c 1048576 /dev/zero)
    blkdiscard -z -o 2097152 -l 1048576 "$(block)"
    dd if="$(block)" bs=256k skip=8 count=4 iflag=direct status=none \
        | cmp - <(head -c 1048576 /dev/zero)
    dd if="$(block)" bs=256k count=4 iflag=direct status=none | cmp - <(head -c 1048576 /tmp/data)
}

compare_command() {
    connect -i 1
    bit "$(oncs)" 0 || fail "the drive has no Compare"
    write_and_compare 0 1
    head -c 4096 /tmp/data > /tmp/same
    nvme compare "$(block)" -s 0 -c $((4096 / BLOCK - 1)) -z 4096 -d /tmp/same
    head -c 4096 /dev/urandom > /tmp/other
    refused 'COMPARE|0x2?85' \
        nvme compare "$(block)" -s 0 -c $((4096 / BLOCK - 1)) -z 4096 -d /tmp/other
}

verify_command() {
    connect -i 1
    bit "$(oncs)" 7 || fail "the drive has no Verify"
    nvme verify "$(block)" -n 1 -s 0 -c 7
}
