# What a drive may have: each is skipped, with the reason, when the drive or the kernel says that
# it has not.

check discovery 40
check trim 60
check write_zeroes 60
check compare_command 40
check verify_command 40
check authentication 60
check authentication_sha512 60
check authentication_without_group 60

oncs() { nvme id-ctrl "$(admin)" | field oncs; }

discovery() {
    expect_kernel 'nvme'
    local said
    if ! said=$(nvme discover -t tcp -a "$HOST" -s "$PORT" -q "$HOST_NQN" -I "$HOST_ID" 2>&1); then
        dmesg | grep -q 'Connect Invalid' && skip "the drive has no discovery subsystem"
        fail "$said"
    fi
    echo "$said"
    grep -q "subnqn: *$NQN" <<< "$said"
    grep -q 'trtype: *tcp' <<< "$said"
}

trim() {
    connect -i 1
    bit "$(oncs)" 2 || skip "the drive has no Dataset Management"
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
    bit "$(oncs)" 3 || skip "the drive has no Write Zeroes"
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
    bit "$(oncs)" 0 || skip "the drive has no Compare"
    write_and_compare 0 1
    head -c 4096 /tmp/data > /tmp/same
    nvme compare "$(block)" -s 0 -c $((4096 / BLOCK - 1)) -z 4096 -d /tmp/same
    head -c 4096 /dev/urandom > /tmp/other
    refused 'COMPARE|0x2?85' \
        nvme compare "$(block)" -s 0 -c $((4096 / BLOCK - 1)) -z 4096 -d /tmp/other
}

verify_command() {
    connect -i 1
    bit "$(oncs)" 7 || skip "the drive has no Verify"
    nvme verify "$(block)" -n 1 -s 0 -c 7
}

# In-band authentication with the drive $1, whose settings are a port, an NQN and two secrets; the
# kernel must say that it used hash $2 and group $3.
authenticated() {
    grep -q dhchap_secret /dev/nvme-fabrics || skip "the kernel has no in-band authentication"
    local settings=AUTH_$1 host_secret drive_secret other
    read -r PORT NQN host_secret drive_secret <<< "${!settings}"
    expect_kernel 'nvme'
    local refusal='failed|could not|denied|refused|rejected|error'
    other=$(nvme gen-dhchap-key --hmac=1 --nqn="$HOST_NQN")
    refused "$refusal" dial -i 1
    refused "$refusal" dial -i 1 --dhchap-secret="$other"
    dmesg | grep 'authenticated with' && fail "and yet it was authenticated"
    # The drive takes this host, but cannot prove itself.
    refused "$refusal" dial -i 1 --dhchap-secret="$host_secret" --dhchap-ctrl-secret="$other"
    dmesg | grep 'controller authentication failed'
    ! controller
    dmesg --clear
    connect -i 2 --dhchap-secret="$host_secret"
    dmesg | grep "authenticated with hash hmac($2) dhgroup $3"
    write_and_compare 0 2
    disconnect
    connect -i 2 --dhchap-secret="$host_secret" --dhchap-ctrl-secret="$drive_secret" -g -G
    dmesg | grep 'qid 0: controller authenticated'
    compare 0 2
    nvme reset "$(admin)"
    within 30 controller
    compare 0 2
    disconnect
}

authentication() { authenticated secret sha256 ffdhe3072; }
authentication_sha512() { authenticated sha512 sha512 ffdhe4096; }
authentication_without_group() { authenticated sha384 sha384 null; }
