# Connections: queues, digests, disconnect, reset, several controllers, a drive that goes away.

check connect_one_queue 40
check connect_four_queues 40
check_long digests_of_headers 40
check_long digests_of_data 40
check digests_of_both 40
check_long without_flow_control 40
check queue_of_1024 40
check reset 60
check two_paths 60
check two_hosts 60
check_long idle_with_keep_alive 90
check_long many_reconnects 120

queues() { cat "$(controller)/queue_count"; }

connect_one_queue() {
    connect -i 1
    [ "$(queues)" = 2 ]
    write_and_compare 0 4
    disconnect
}

# The kernel has at most as many queues of a kind as processors: two kinds make four.
connect_four_queues() {
    connect -i 2 -W 2
    [ "$(queues)" = 5 ]
    write_and_compare 4 8
    disconnect
}

digests_of_headers() { connect -i 2 --hdr-digest; write_and_compare 8 4; disconnect; }

digests_of_data() { connect -i 2 --data-digest; write_and_compare 8 4; disconnect; }

digests_of_both() {
    connect -i 2 --hdr-digest --data-digest
    write_and_compare 12 8
    disconnect
}

without_flow_control() { connect -i 1 --disable-sqflow; write_and_compare 3 4; disconnect; }

queue_of_1024() {
    connect -i 1 --queue-size=1024
    [ "$(cat "$(controller)/sqsize")" = 1023 ]
    write_and_compare 3 4
    disconnect
}

reset() {
    connect -i 2
    write_and_compare 0 4
    expect_kernel 'resetting controller|creating|mapped'
    nvme reset "$(admin)"
    within 30 controller
    compare 0 4
    disconnect
}

# Two controllers of one host: the namespaces come together as paths, and one may go.
two_paths() {
    connect -i 1
    local first second
    first=$(admin)
    # The kernel's own interface: not every nvme-cli passes --duplicate-connect on.
    printf %s "transport=tcp,traddr=$HOST,trsvcid=$PORT,nqn=$NQN,hostnqn=$HOST_NQN,hostid=$HOST_ID" \
        ",nr_io_queues=1,duplicate_connect" > /dev/nvme-fabrics
    within 20 eval '[ "$(ls -d /sys/class/nvme/nvme* | wc -l)" = 2 ]'
    for second in /dev/nvme[0-9]; do [ "$second" != "$first" ] && break; done
    within 20 eval "[ \"\$(cat /sys/class/nvme/${second##*/}/state)\" = live ]"
    [ "$(nvme id-ctrl "$first" | field cntlid)" != "$(nvme id-ctrl "$second" | field cntlid)" ]
    write_and_compare 0 4
    nvme disconnect -d "$first"
    compare 0 4
    write_and_compare 2 4
    disconnect
}

# SHA-256 of $2 bytes at $1, past the page cache.
sum_of() {
    dd if="$(block)" bs=256k skip="$(($1 >> 18))" count="$(($2 >> 18))" iflag=direct status=none \
        | sha256sum | cut -d ' ' -f 1
}

# Two hosts at once, each with its own name and controller: what one has flushed the other reads,
# round by round, while both stay connected.
two_hosts() {
    connect -i 2
    ask other joins
    local round offset sum
    for round in 0 1 2 3; do
        offset=$((round << 20))
        write_and_compare $round 2
        sum=$(asked other sums $offset 2097152)
        [ "$sum" = "$(sha256sum < /tmp/data | cut -d ' ' -f 1)" ]
        # Half of it anew, by the other host.
        sum=$(asked other writes $offset 1048576)
        [ "$sum" = "$(sum_of $offset 1048576)" ]
    done
    ask other leaves
    write_and_compare 0 1
}

# Longer than several keep-alive intervals: the connection is the same one afterwards.
idle_with_keep_alive() {
    connect -i 1 --keep-alive-tmo=4
    write_and_compare 0 1
    local before
    before=$(nvme id-ctrl "$(admin)" | field cntlid)
    sleep 20
    [ "$(nvme id-ctrl "$(admin)" | field cntlid)" = "$before" ]
    compare 0 1
    disconnect
}

many_reconnects() {
    local round
    for round in 1 2 3 4 5 6 7 8 9 10; do
        connect -i $((round % 2 + 1))
        if [ "$round" = 1 ]; then write_and_compare 0 2; fi
        compare 0 2
        disconnect
    done
}
