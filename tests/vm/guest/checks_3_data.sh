# Bytes: verified random writes, flush, a file system, data that stay.

check fio_verify_4k 60
check fio_verify_64k 60
check fio_verify_1m 60
check_long fio_verify_with_digests 60
check flush 40
check file_system 120
check reconnect_finds_data 60
check drive_restarts 120
check drive_is_killed 120
check_long fio_mixed 240
check_long file_system_while_drive_restarts 240

if [ "$FORM" = long ]; then VERIFY_MIB=96; else VERIFY_MIB=12; fi

# Random writes of $1 bytes, then everything read and its checksums verified.
verify() {
    fio --name=verify --filename="$(block)" --ioengine=libaio --direct=1 --rw=randwrite \
        --bs="$1" --iodepth=16 --size="${VERIFY_MIB}M" --offset=16M --verify=crc32c \
        --verify_fatal=1 --randseed="$RANDOM" --thread --group_reporting "${@:2}"
}

fio_verify_4k() { connect -i 2; verify 4k --size=$((VERIFY_MIB / 3))M; }
fio_verify_64k() { connect -i 2; verify 64k; }
fio_verify_1m() { connect -i 2; verify 1M; }
fio_verify_with_digests() { connect -i 2 -g -G; verify 64k; }

fio_mixed() {
    connect -i 2 -W 2 -g -G
    verify 4k --rw=randrw --bsrange=4k-256k --numjobs=2 --offset_increment=128M --fsync=64
}

flush() {
    connect -i 1
    nvme flush "$(block)" -n 1
    write_and_compare 0 2
    blockdev --flushbufs "$(block)"
    compare 0 2
    # Force unit access, as a journal writes.
    dd if=/tmp/data of="$(block)" bs=64k count=32 oflag=direct,dsync status=none
    compare 0 2
}

# A tree of small and larger files with random content, under $1.
grow_tree() {
    local folder file
    for folder in a b c/d c/e/f; do
        mkdir -p "$1/$folder"
        for file in 1 2 3 4 5 6 7 8; do
            head -c $((file * file * 3001)) /dev/urandom > "$1/$folder/$file"
        done
    done
    head -c 5000000 /dev/urandom > "$1/large"
    cp -r /usr/lib/nvme /etc "$1" 2> /dev/null || cp -r /etc "$1"
    (cd "$1" && find . -type f ! -name sums -exec sha256sum {} + > sums)
}

file_system() {
    connect -i 2
    mkfs.ext4 -q -F "$(block)"
    mount "$(block)" /tmp/mnt
    grow_tree /tmp/mnt
    rm -r /tmp/mnt/b
    sed -i '/ \.\/b\//d' /tmp/mnt/sums
    umount /tmp/mnt
    disconnect
    connect -i 1 -g -G
    fsck.ext4 -f -n "$(block)"
    mount "$(block)" /tmp/mnt
    (cd /tmp/mnt && sha256sum --quiet -c sums)
    [ "$(wc -l < /tmp/mnt/sums)" -gt 40 ]
    [ ! -e /tmp/mnt/b ]
    umount /tmp/mnt
}

reconnect_finds_data() {
    connect -i 1
    write_and_compare 32 8
    disconnect
    connect -i 2
    compare 32 8
}

# The drive ends in order and comes back: the kernel reconnects by itself.
drive_restarts() { comes_back restart; }

# The drive is killed: what was flushed is there.
drive_is_killed() { comes_back kill; }

comes_back() {
    connect -i 2
    write_and_compare 40 8
    expect_kernel 'nvme'
    ask "$1"
    # It notices only when it uses the connection.
    within 60 compare 40 8
    within 60 controller
    write_and_compare 41 8
}

file_system_while_drive_restarts() {
    connect -i 2
    mkfs.ext4 -q -F "$(block)"
    mount "$(block)" /tmp/mnt
    expect_kernel 'nvme'
    local round
    for round in 1 2 3; do
        mkdir "/tmp/mnt/$round"
        (ask kill) &
        grow_tree "/tmp/mnt/$round"
        wait $!
        sync -f /tmp/mnt
    done
    for round in 1 2 3; do (cd "/tmp/mnt/$round" && sha256sum --quiet -c sums); done
    umount /tmp/mnt
    fsck.ext4 -f -n "$(block)"
}
