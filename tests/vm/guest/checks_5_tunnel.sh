# The drive's tunnel, through the kernel's passthrough: an ICMP echo to the inside, which answers.

check tunnel_echo 60

# Bytes in hexadecimal, with spaces anywhere.
bytes() { local text=${1// /}; printf "$(sed 's/../\\x&/g' <<< "$text")"; }

tunnel_echo() {
    read -r PORT NQN <<< "$TUNNEL"
    connect -i 1
    within 20 generic_ready 5
    # Length, virtio-net header, IPv4 from 10.77.0.1 to 10.77.0.2, ICMP echo request, padding.
    local frame='36000000 00000000000000000000' data='12340001 637364 73746f72652d74756e6e656c21'
    bytes "$frame 4500002c000100004001 6634 0a4d0001 0a4d0002 0800b9a5 $data 0000" > /tmp/request
    bytes "$frame 4500002c000100004001 6634 0a4d0002 0a4d0001 0000c1a5 $data 0000" > /tmp/reply
    [ "$(stat -c %s /tmp/request)" = 60 ]
    tunnel_send 60
    # The reply waits for the end, so one Receive has it.
    nvme io-passthru "$(generic 5)" -n 5 --opcode=0xc2 --cdw10=16388 --data-len=65552 --read \
        --raw-binary > /tmp/received
    # Standard output has words before the data.
    tail -c 65552 /tmp/received | head -c 60 | cmp - /tmp/reply
    expect_kernel 'nvme'
    # A list that is cut is refused.
    refused 'INVALID_FIELD|Invalid Field|0x2?002\)|\(0x2\)' tunnel_send 56
}

# Sends the first $1 bytes of the request.
tunnel_send() {
    nvme io-passthru "$(generic 5)" -n 5 --opcode=0xc1 --cdw10=$(($1 / 4)) --data-len="$1" \
        --input-file=/tmp/request --write
}
