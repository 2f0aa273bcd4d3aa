# Caches of language models that speak to /dev/ngXnY.

check_long mooncake_cache 600

# Mooncake's wheel from PyPI stores objects, drops its copies in memory, and reads them from the
# drive after the drive has been restarted.
mooncake_cache() {
    [ -b /dev/vdc ] || skip "no disk with Mooncake: $MOONCAKE"
    connect -i 2
    within 20 generic_ready 2
    local device pid
    device=$(generic 2)
    mkdir -p /tmp/mooncake
    mount -o ro /dev/vdc /tmp/mooncake
    mount --rbind /dev /tmp/mooncake/dev
    mount --rbind /proc /tmp/mooncake/proc
    mount --rbind /sys /tmp/mooncake/sys
    mount -t tmpfs tmpfs /tmp/mooncake/tmp
    mount --bind /vm /tmp/mooncake/vm
    mkfifo /tmp/wish
    chroot /tmp/mooncake python3 /vm/mooncake_store.py "$device" 2 < /tmp/wish > /tmp/said 2> /tmp/log &
    pid=$!
    exec 4> /tmp/wish
    (within 300 said_or_ended $pid) || fail "$(words_of_mooncake)"
    grep -q forgotten /tmp/said || fail "$(words_of_mooncake)"
    expect_kernel 'nvme'
    ask restart
    # The kernel notices only when it uses the connection, and repeats no command of a program.
    within 60 kv_answers
    echo go >&4
    wait $pid || fail "$(words_of_mooncake)"
    cat /tmp/said
    exec 4>&-
    umount --recursive /tmp/mooncake
    rm /tmp/wish
}

words_of_mooncake() { cat /tmp/said; tail -n 35 /tmp/log; }

said_or_ended() { grep -q forgotten /tmp/said || ! kill -0 "$1" 2> /dev/null; }

# True if the kv namespace answers, also if it answers that a key does not exist.
kv_answers() {
    local said
    said=$(kv $EXIST $KEY 0 2>&1) || grep -Eqi "$ABSENT" <<< "$said"
}
