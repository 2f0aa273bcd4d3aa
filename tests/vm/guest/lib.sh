# What checks are written with. A check is a function; it runs under `set -e`, so every command in
# it is an assertion.
STATE=/tmp/state
HOST=10.0.2.2

stretched() { awk -v s="$1" -v f="$FACTOR" 'BEGIN { printf "%d", s * f + 0.5 }'; }

# Ends the check as skipped: the lane prints why.
skip() { echo "$*"; exit 77; }

fail() { echo "$*"; exit 1; }

# The kernel may say so in this check.
expect_kernel() { echo "$1" >> "$STATE/expected"; }

# Of the kernel's messages, those that speak of us or of a fault, and were not expected.
unexpected() {
    grep -Ei 'nvme|i/o error|blk_|ext4|BUG|WARNING|hung|stall|lockup|call trace|oops' \
        | grep -Eiv 'EXT4-fs .*(mounted|unmounting)|failed to set APST' \
        | { if [ -s "$STATE/expected" ]; then grep -Evf "$STATE/expected"; else cat; fi; }
}

# Retries a command until it succeeds, at most $1 seconds (stretched).
within() {
    local end=$((SECONDS + $(stretched "$1")))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || fail "not in time: $*"
        sleep 0.1
    done
}

# Asks the kernel to connect, and no more.
dial() {
    nvme connect -t tcp -a "$HOST" -s "$PORT" -n "$NQN" -q "$HOST_NQN" -I "$HOST_ID" \
        --keep-alive-tmo=30 --reconnect-delay=1 --ctrl-loss-tmo=120 "$@"
}

connect() {
    dial "$@"
    within 20 controller
    within 20 block_ready
}

disconnect_all() {
    nvme disconnect-all > /dev/null 2>&1 || true
}

disconnect() {
    nvme disconnect -n "$NQN"
    ! controller
}

# Folder in sysfs of the first live controller of our drive.
controller() {
    local folder
    for folder in /sys/class/nvme/nvme*; do
        [ "$(cat "$folder/subsysnqn" 2> /dev/null)" = "$NQN" ] || continue
        [ "$(cat "$folder/state")" = live ] || continue
        echo "$folder"
        return 0
    done
    return 1
}

# Character device of the controller.
admin() { echo "/dev/$(basename "$(controller)")"; }

# Number in the names of the drive's namespaces.
instance() {
    local folder
    for folder in /sys/class/nvme-subsystem/nvme-subsys*; do
        if [ "$(cat "$folder/subsysnqn" 2> /dev/null)" = "$NQN" ]; then
            echo "${folder##*nvme-subsys}"
            return 0
        fi
    done
    return 1
}

# The number that the kernel gave to namespace $1: in the order in which it found them, which is
# not that of their ids.
number() {
    local folder
    for folder in "$(controller)"/nvme*n[0-9]*; do
        if [ "$(cat "$folder/nsid" 2> /dev/null)" = "$1" ]; then
            echo "${folder##*n}"
            return 0
        fi
    done
    return 1
}

block() { echo "/dev/nvme$(instance)n$(number 1)"; }

block_ready() { [ -b "$(block)" ]; }

# Character device of namespace $1.
generic() { echo "/dev/ng$(instance)n$(number "$1")"; }

generic_ready() { [ -c "$(generic "$1")" ]; }

# Value of a field that nvme-cli prints as `name : value`.
field() { awk -F: -v name="$1" '{ key = $1; gsub(/[ \t]/, "", key) }
    key == name { sub(/^[^:]*:[ \t]*/, ""); print; exit }'; }

# Bit $2 of the number $1.
bit() { (( ($1 >> $2) & 1 )); }

# Writes $2 MiB of random bytes at $1 MiB and reads them back, past the page cache.
write_and_compare() {
    head -c "$(($2 << 20))" /dev/urandom > /tmp/data
    dd if=/tmp/data of="$(block)" bs=256k seek="$(($1 * 4))" oflag=direct conv=fsync status=none
    compare "$1" "$2"
}

# Compares $2 MiB at $1 MiB with what `write_and_compare` wrote last.
compare() {
    dd if="$(block)" bs=256k skip="$(($1 * 4))" count="$(($2 * 4))" iflag=direct status=none \
        | cmp - /tmp/data
}

# Asks the host for something: its answer, one word.
asked() {
    local answer
    echo "@ASK $*" >&3
    read -r answer <&3
    echo "$answer"
}

# The same for something that is to be done.
ask() {
    local answer
    answer=$(asked "$@")
    [ "$answer" = done ] || fail "the host answered $answer"
}

# A command that must fail, with a message that matches $1.
refused() {
    local pattern=$1 output
    shift
    if output=$("$@" 2>&1); then
        fail "succeeded: $*"
    fi
    echo "$output"
    grep -Eqi "$pattern" <<< "$output" || fail "refused in other words than $pattern"
}
