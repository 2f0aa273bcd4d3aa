# A block device of the kernel's ublk driver, by `csd attach --ublk`, next to the kernel's own
# initiator: what one has synced the other reads.

check_long ublk_device 60
check ublk_attach_is_killed 60
check_long ublk_file_system 180
check_long ublk_drive_is_killed 120

CSD=/tmp/programs/csd
ATTACHED=

# Finds the driver and the program, or skips the check.
ublk_ready() {
    modprobe ublk_drv 2> /dev/null || skip "this kernel has no driver ublk_drv"
    mkdir -p /tmp/programs
    mountpoint -q /tmp/programs || mount -o ro /dev/vdb /tmp/programs
    "$CSD" --version || skip "csd was built for another system: $("$CSD" --version 2>&1)"
}

# Attaches the drive; $UBLK is the device.
ublk_attach() {
    : > /tmp/attached
    "$CSD" attach "nvme+tcp://$HOST:$PORT/$NQN" --ublk "$@" > /tmp/attached 2> /tmp/complaints &
    ATTACHED=$!
    within 20 eval 'grep -q "^ *file" /tmp/attached || ! kill -0 $ATTACHED'
    UBLK=$(sed -n 's/^ *file *//p' /tmp/attached)
    [ -b "$UBLK" ] || fail "no device: $(cat /tmp/attached /tmp/complaints)"
}

# Ends it in order: nothing is left.
ublk_detach() {
    kill "$ATTACHED"
    wait "$ATTACHED" || fail "csd attach: status $?: $(cat /tmp/complaints)"
    ATTACHED=
    [ ! -e "$UBLK" ]
    none_is_left
}

none_is_left() { [ -z "$(ls /sys/class/ublk-char)" ]; }

# Removes what a failed check has left.
ublk_end() {
    [ -n "$ATTACHED" ] || return 0
    cat /tmp/complaints
    kill -KILL "$ATTACHED" 2> /dev/null || true
}

# Property of the device's queue.
queue() { cat "/sys/block/${UBLK##*/}/queue/$1"; }

# Compares $2 MiB at $1 MiB of the device with the last data, from $3 MiB of them on.
ublk_compare() {
    dd if="$UBLK" bs=1M skip="$1" count="$2" iflag=direct status=none \
        | cmp - <(tail -c +"$((($3 << 20) + 1))" /tmp/data | head -c "$(($2 << 20))")
}

# The initiator reads $3 times $1 of zeros at $2 times $1.
zeros() {
    local bytes=$(($(numfmt --from=iec "${1^^}") * $3))
    dd if="$(block)" bs="$1" skip="$2" count="$3" iflag=direct status=none \
        | cmp - <(head -c "$bytes" /dev/zero)
}

ublk_device() {
    ublk_ready
    ublk_attach
    connect -i 1
    [ "$(blockdev --getsize64 "$UBLK")" = "$(blockdev --getsize64 "$(block)")" ]
    [ "$(queue logical_block_size)" = "$BLOCK" ]
    [ "$(queue write_cache)" = 'write back' ]
    [ "$(queue fua)" = 1 ]
    # Through the kernel's cache, with a sync; read by the kernel's own initiator.
    head -c 4194304 /dev/urandom > /tmp/data
    dd if=/tmp/data of="$UBLK" bs=64k seek=64 conv=fsync status=none
    compare 4 4
    # The other way, past both caches.
    write_and_compare 8 4
    ublk_compare 8 4 0
    # Force unit access, as a journal writes.
    dd if=/tmp/data of="$UBLK" bs=64k seek=192 oflag=direct,dsync status=none
    compare 12 4
    # A hole of 2 MiB in the middle, and zeros that are written.
    blkdiscard -o 13631488 -l 2097152 "$UBLK"
    blkdiscard --zeroout -o 16252928 -l 524288 "$UBLK"
    ublk_compare 12 1 0
    zeros 1M 13 2
    zeros 512k 31 1
    disconnect
    ublk_detach
}

# A killed `csd attach` takes its device along; the next one removes what is left of it.
ublk_attach_is_killed() {
    ublk_ready
    ublk_attach
    head -c 1048576 /dev/urandom > /tmp/data
    dd if=/tmp/data of="$UBLK" bs=64k conv=fsync status=none
    expect_kernel 'ublkb|I/O error'
    kill -KILL "$ATTACHED"
    wait "$ATTACHED" || true
    within 20 eval '[ ! -e "$UBLK" ]'
    ! none_is_left
    ublk_attach
    [ "$(ls /sys/class/ublk-char | wc -l)" = 1 ]
    ublk_compare 0 1 0
    ublk_detach
}

ublk_file_system() {
    ublk_ready
    ublk_attach
    mkfs.ext4 -q -F "$UBLK"
    mount -o discard "$UBLK" /tmp/mnt
    grow_tree /tmp/mnt
    umount /tmp/mnt
    ublk_detach
    connect -i 1
    fsck.ext4 -f -n "$(block)"
    mount "$(block)" /tmp/mnt
    (cd /tmp/mnt && sha256sum --quiet -c sums)
    umount /tmp/mnt
    disconnect
    # Ended under a mounted file system: it says so, and goes.
    ublk_attach
    mount -o ro,noload "$UBLK" /tmp/mnt
    expect_kernel 'ublkb|I/O error|EXT4-fs'
    kill "$ATTACHED"
    wait "$ATTACHED"
    ATTACHED=
    grep -q 'is in use' /tmp/complaints
    umount /tmp/mnt
    within 20 none_is_left
}

# I/O waits for a drive that is away; without patience it fails with EIO, and goes on afterwards.
ublk_drive_is_killed() {
    ublk_ready
    ublk_attach --retry 10m
    head -c 4194304 /dev/urandom > /tmp/data
    dd if=/tmp/data of="$UBLK" bs=64k conv=fsync status=none
    ask kill
    ublk_compare 0 4 0
    dd if=/tmp/data of="$UBLK" bs=64k seek=64 conv=fsync status=none
    ublk_detach
    ublk_attach --retry 0
    ask kill
    expect_kernel 'ublkb|I/O error'
    refused 'Input/output error' dd if="$UBLK" of=/dev/null bs=4k count=1 iflag=direct
    within 20 ublk_compare 4 4 0
    ublk_detach
}
