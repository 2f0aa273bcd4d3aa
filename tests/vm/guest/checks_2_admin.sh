# What the drive says of itself.

check identify_controller 40
check identify_namespaces 40
check blocks_alone 60
check list 40
check logs 40
check features 40
check_long rescan 40

identify_controller() {
    connect -i 1
    local said
    said=$(nvme id-ctrl "$(admin)")
    echo "$said"
    [ "$(field subnqn <<< "$said")" = "$NQN" ]
    [ "$(field sqes <<< "$said")" = 0x66 ]
    [ "$(field cqes <<< "$said")" = 0x44 ]
    [ "$(field cntrltype <<< "$said")" = 1 ]
    [ "$(field ioccsz <<< "$said")" -ge 4 ]
    [ "$(field kas <<< "$said")" -gt 0 ]
    # The kernel made its own limit from MDTS.
    [ "$(cat "/sys/block/$(basename "$(block)")/queue/max_hw_sectors_kb")" -ge 128 ]
    local offset
    for offset in 0 8 0x14 0x1c; do nvme get-property "$(admin)" -o $offset; done
    nvme get-property "$(admin)" -o 0x1c -H | grep -Eqi 'ready.*(yes|1)'
}

identify_namespaces() {
    connect -i 1
    local said size
    said=$(nvme id-ns "$(block)" -n 1)
    echo "$said"
    grep -q 'in use' <<< "$said"
    size=$(( $(field nsze <<< "$said") * BLOCK ))
    [ "$(blockdev --getsize64 "$(block)")" = "$size" ]
    [ "$(blockdev --getss "$(block)")" = "$BLOCK" ]
    said=$(nvme ns-descs "$(admin)" -n 1)
    echo "$said"
    grep -q '^nguid' <<< "$said"
    grep -q '^uuid' <<< "$said"
    # What links of udev are named after.
    grep -q '^uuid\.' "/sys/block/$(basename "$(block)")/wwid"
    [ "$(grep -o '[0-9a-f]\{32\}' <<< "$said" | tr -d 0)" != "" ]
    said=$(nvme list-ns "$(admin)")
    echo "$said"
    for nsid in 0x1 0x2 0x3 0x4 0x5; do grep -q ":$nsid\$" <<< "$said"; done
    # Capacity is told of those without blocks, too, as SPDK's host wants it.
    for nsid in 2 3 4 5; do
        said=$(nvme id-ns "$(admin)" -n $nsid)
        [ "$(( $(field ncap <<< "$said") ))" -gt 0 ]
    done
    refused 'INVALID_NS|invalid namespace' nvme id-ns "$(admin)" -n 0xffffffff
}

# A drive that shows its blocks alone: its device has the name that everybody expects.
blocks_alone() {
    read -r PORT NQN <<< "$BLOCKS"
    local round said
    for round in 1 2 3; do
        connect -i 1
        [ "$(block)" = "/dev/nvme$(instance)n1" ]
        said=$(nvme list-ns "$(admin)")
        [ "$(grep -c : <<< "$said")" = 1 ]
        write_and_compare 0 1
        disconnect
    done
}

list() {
    connect -i 1
    local said
    said=$(nvme list)
    echo "$said"
    grep -q "^$(block) " <<< "$said"
    said=$(nvme list-subsys)
    echo "$said"
    grep -q "$NQN" <<< "$said"
    grep -q "tcp.*$HOST.*live" <<< "$said"
}

# Versions of nvme-cli name it in different ways.
units_written() { grep -i 'data.units.written' | sed 's/.*: *\([0-9,]*\).*/\1/; s/,//g'; }

logs() {
    connect -i 1
    local said
    said=$(nvme smart-log "$(admin)")
    echo "$said"
    [ "$(field critical_warning <<< "$said")" = 0 ]
    write_and_compare 0 4
    local before after
    before=$(units_written <<< "$said")
    after=$(nvme smart-log "$(admin)" | units_written)
    [ "$after" -gt "$before" ]
    nvme error-log "$(admin)" -e 1
    nvme fw-log "$(admin)"
    nvme effects-log "$(admin)"
    nvme get-log "$(admin)" --log-id=0 --log-len=1024
}

features() {
    connect -i 1
    local id
    # Arbitration, power, number of queues, write atomicity, async events, keep-alive timer.
    for id in 0x01 0x02 0x07 0x0a 0x0b 0x0f; do nvme get-feature "$(admin)" -f $id; done
    nvme get-feature "$(admin)" -f 0x0f | grep -q 'urrent value'
    refused 'INVALID_FIELD|invalid field' nvme get-feature "$(admin)" -f 0x7f
}

rescan() {
    connect -i 1
    nvme ns-rescan "$(admin)"
    within 20 block_ready
    write_and_compare 0 1
}
