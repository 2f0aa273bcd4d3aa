# What must be refused, and in the standard's words.

check past_the_end 40
check wrong_nqn 40
check unknown_commands 40
check wrong_namespace 40

past_the_end() {
    connect -i 1
    expect_kernel 'nvme|I/O error'
    local blocks
    blocks=$(( $(blockdev --getsize64 "$(block)") / BLOCK ))
    nvme read "$(block)" -s $((blocks - 1)) -c 0 -z "$BLOCK" -d /tmp/last
    refused 'LBA.?OUT.?OF.?RANGE|LBA_RANGE|exceeds the size|0x80\)' \
        nvme read "$(block)" -s "$blocks" -c 0 -z "$BLOCK" -d /tmp/past
    refused 'LBA.?OUT.?OF.?RANGE|LBA_RANGE|exceeds the size|0x80\)' \
        nvme read "$(block)" -s $((blocks - 1)) -c 1 -z $((BLOCK * 2)) -d /tmp/past
    refused 'LBA.?OUT.?OF.?RANGE|LBA_RANGE|exceeds the size|0x80\)' \
        nvme write "$(block)" -s $((1 << 60)) -c 0 -z "$BLOCK" -d /tmp/last
    write_and_compare 0 1
}

wrong_nqn() {
    expect_kernel 'nvme'
    refused 'failed|could not|invalid' nvme connect -t tcp -a "$HOST" -s "$PORT" -n "$NQN-not" \
        -q "$HOST_NQN" -I "$HOST_ID"
    ! ls /sys/class/nvme/nvme* 2> /dev/null
    # Connect Invalid Parameters: SC 82h of a command-specific status.
    dmesg | grep -E 'Connect Invalid|status: ?(16770|386)|rejected|subsysnqn'
    connect -i 1
}

unknown_commands() {
    connect -i 1
    expect_kernel 'nvme'
    refused 'INVALID_OPCODE|Invalid Command Opcode|0x2?001\)|\(0x1\)' \
        nvme admin-passthru "$(admin)" --opcode=0xc5
    refused 'INVALID_OPCODE|Invalid Command Opcode|0x2?001\)|\(0x1\)' \
        nvme io-passthru "$(block)" --opcode=0xc5 -n 1
    refused 'INVALID_FIELD|Invalid Field|\(0x2\)' \
        nvme admin-passthru "$(admin)" --opcode=6 --cdw10=0x7f --data-len=4096 -r
    write_and_compare 0 1
}

wrong_namespace() {
    connect -i 1
    refused 'INVALID_NS|Invalid Namespace|0x200b|0x400b|\(0xb\)' \
        nvme id-ns "$(admin)" -n 77
    refused 'INVALID_NS|Invalid Namespace|0x200b|0x400b|\(0xb\)' \
        nvme ns-descs "$(admin)" -n 77
}
