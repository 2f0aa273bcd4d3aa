# Namespaces of command sets that the kernel does not know: they come as /dev/ngXnY, and commands
# pass through.

check generic_devices 40
check kv_store_and_retrieve 60
check kv_refusals 40
check compute_count 60

generic_devices() {
    connect -i 1
    local nsid
    for nsid in 1 2 3 4 5; do within 20 generic_ready $nsid; done
    for nsid in 2 3 4 5; do [ ! -b "/dev/nvme$(instance)n$(number $nsid)" ]; done
}

# Opcode $1 on the user's kv namespace for a key of at most 4 bytes, $2 in hexadecimal; the value's
# size is $3, then further options. Dword 12 is reserved, and filled: Mooncake has the length in
# blocks there.
kv() {
    local opcode=$1 key=$2 size=$3 number=0 at
    for ((at = 0; at < ${#key}; at += 2)); do
        number=$((number | 0x${key:at:2} << (at * 4)))
    done
    nvme io-passthru "$(generic 2)" -n 2 --opcode="$opcode" --cdw2=$number --cdw10="$size" \
        --cdw11=$((${#key} / 2)) --cdw12=$((size / 512 + 1)) "${@:4}"
}

STORE=0x01 RETRIEVE=0x02 LIST=0x06 DELETE=0x10 EXIST=0x14
KEY=6b657931 # key1
# Key does not exist, with or without Do Not Retry.
ABSENT='0x4?0?87\)'

kv_store_and_retrieve() {
    connect -i 1
    within 20 generic_ready 2
    local size
    for size in 1 70000 262144; do
        head -c $size /dev/urandom > /tmp/value
        kv $STORE $KEY $size --data-len=$size --input-file=/tmp/value --write
        kv $EXIST $KEY 0
        # Through a file: standard output has words around the data.
        kv $RETRIEVE $KEY $size --data-len=$size --read --raw-binary > /tmp/retrieved
        tail -c $size /tmp/retrieved | cmp - /tmp/value
    done
    kv $LIST '' 4096 --data-len=4096 --read --raw-binary > /tmp/listed
    grep -qa key1 /tmp/listed
    disconnect
    connect -i 2 -g -G
    within 20 generic_ready 2
    kv $EXIST $KEY 0
    kv $RETRIEVE $KEY $size --data-len=$size --read --raw-binary > /tmp/retrieved
    tail -c $size /tmp/retrieved | cmp - /tmp/value
    kv $DELETE $KEY 0
    refused "$ABSENT" kv $EXIST $KEY 0
}

kv_refusals() {
    connect -i 1
    within 20 generic_ready 2
    expect_kernel 'nvme'
    refused "$ABSENT" kv $RETRIEVE 61626364 4096 --data-len=4096 --read
    refused 'INVALID_OPCODE|Invalid Command Opcode|0x2?001\)|\(0x1\)' kv 0x7d 61626364 0
    # Store only if the key exists (bit 0 of the options in bits 15:8).
    head -c 16 /dev/urandom > /tmp/value
    refused "$ABSENT" nvme io-passthru "$(generic 2)" -n 2 --opcode=1 --cdw2=0x41424344 \
        --cdw10=16 --cdw11=$((4 | 1 << 8)) --data-len=16 --input-file=/tmp/value --write
}

# Little-endian number $1 in $2 bytes.
le() {
    local number=$1 at
    for ((at = 0; at < $2; at++)); do
        printf "\\x$(printf %02x $((number >> (8 * at) & 255)))"
    done
}

# The drive counts in blocks that the kernel wrote: 3 MiB of i32, of which 1000 are 7. The kernel
# passes no dword 4 through, where the data's length is: the drive takes the transfer's.
compute_count() {
    connect -i 2
    within 20 generic_ready 5
    head -c 3145728 /dev/zero > /tmp/data
    printf '\007\000\000\000%.0s' {1..1000} > /tmp/sevens
    dd if=/tmp/sevens of=/tmp/data bs=4000 seek=50 conv=notrunc status=none
    [ "$(stat -c %s /tmp/data)" = 3145728 ]
    dd if=/tmp/data of="$(block)" bs=256k oflag=direct conv=fsync status=none
    {
        printf CSDX
        le 1 2; le 1 2; le 1 8; le 0 4; le 0 1; le 0 3; le 16 4; head -c 36 /dev/zero
        le 2 1; le 0 3; le 1 4; le 0 8; le 0 4; le 0 4; le 3145728 4; le 0 4
        le 1 1; le 0 1; le 0 6; le 7 8
    } > /tmp/payload
    [ "$(stat -c %s /tmp/payload)" = 112 ]
    nvme io-passthru "$(generic 5)" -n 5 --opcode=1 --cdw2=0 --data-len=112 \
        --input-file=/tmp/payload --write > /tmp/answer 2>&1 || fail "$(cat /tmp/answer)"
    cat /tmp/answer
    grep -Eqi 'result:? *(0x)?0*3e8( |$)' /tmp/answer
}
