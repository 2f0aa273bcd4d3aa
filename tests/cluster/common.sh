# Shared by the lanes of clusters: what they need, two drives in a network namespace, outcomes. Source
# it in the project's folder after `set -euo pipefail`, with the program and a Python with NumPy.
CSD=$(realpath "${1:?name the program}") python=$(realpath -s "${2:?name a Python with NumPy}")
export CSD
root=$PWD recipes=$PWD/recipes
begun=$SECONDS passed=0 skipped=0
network=10.81.0
# Longest time of a command, and of a wait. It is against hanging alone: no slow machine needs it.
hang_s=1800

skip() { # skip PART WHY
    echo "SKIPPED cluster, $1: $2"
    skipped=$((skipped + 1))
}
ended() {
    echo "$passed passed, 0 failed, $skipped skipped"
    exit 0
}
done_with() {
    echo "ok cluster, $1 ($((SECONDS - begun)) s)"
    passed=$((passed + 1))
}
# Ends the lane as passed, with a word on it, where nothing of it can be run.
need_machine() {
    local tool
    for tool in runc losetup mke2fs ip ssh ssh-keygen mmdebstrap; do
        command -v "$tool" >/dev/null || { skip all "no $tool"; ended; }
    done
    [ "$(id -u)" = 0 ] || { skip all "needs root"; ended; }
    [ -e /dev/net/tun ] && [ -e /dev/fuse ] || { skip all "no /dev/net/tun or no /dev/fuse"; ended; }
    unshare --net true 2>/dev/null || { skip all "no network namespace may be made"; ended; }
    packaging/os/make.sh build/os/root full || { skip all "no image could be made"; ended; }
}
cleanup() {
    local code=$?
    [ $code = 0 ] || { echo "FAILED; what was said:"; tail -n 20 "$work"/*.log 2>/dev/null; } >&2
    inside "$recipes/hadoop/down" >/dev/null 2>&1 || true
    inside "$CSD" array down --delete --yes >/dev/null 2>&1 || true
    ip netns delete "$space" || true
    rm -rf --one-file-system "$work"
}
inside() {
    (cd "$work" && timeout --foreground -k 60 $hang_s nsenter --net="/run/netns/$space" "$@")
}
# Starts two drives of a size in a folder of their own, which becomes the current one.
start_array() { # start_array SIZE
    work=$(mktemp -d) space=csd$$cluster
    ip netns add "$space"
    trap cleanup EXIT
    ip -n "$space" link set lo up
    cd "$work"
    ssh-keygen -q -t ed25519 -N '' -f key
    inside "$CSD" --quiet array up --drives 2 --size "$1" --kv 10% --os "$root/build/os/root" \
        --os-cpus 0.9 --os-memory 2G --os-key key.pub --os-network $network.1/24
}
in_drive() { inside ssh -F csd-array/ssh_config -o BatchMode=yes "$@"; }
kill_drive() { "$python" "$root/tests/cluster/kill.py" csd-array.toml "$@"; }
# Fails with the output of a command that ends with another exit code.
expect() { # expect CODE LOG COMMAND...
    local wanted=$1 log=$2 code=0
    shift 2
    "$@" >"$log" 2>&1 || code=$?
    [ $code = "$wanted" ] || { echo "exit code $code, not $wanted: $*" >&2; exit 1; }
}
# Waits for an event: until a command succeeds, as long as the process of a job goes on. A job may
# end right after the event: it is looked for once more then.
until_seen() { # until_seen PID COMMAND...
    local job=$1 runs=1
    shift
    until "$@"; do
        [ $runs = 1 ] || { echo "it ended without: $*" >&2; exit 1; }
        sleep 0.2
        kill -0 "$job" 2>/dev/null || runs=0
    done
}
# Waits for what comes by itself: until a command succeeds.
eventually() { # eventually COMMAND...
    local end=$((SECONDS + hang_s))
    until "$@"; do
        [ $SECONDS -lt $end ] || { echo "in $hang_s s there was no: $*" >&2; exit 1; }
        sleep 1
    done
}

has_mpi() {
    command -v mpirun >/dev/null && command -v mpicc >/dev/null && [ -e /usr/include/fftw3.h ] && return
    skip MPI "no Open MPI or no FFTW (apt-get install openmpi-bin libopenmpi-dev libfftw3-dev)"
    return 1
}
# Prepares MPI. Returns false, and says why, where it cannot be run.
start_mpi() {
    has_mpi || return 1
    local own other
    own=$(mpirun --version | head -n 1) other=$(in_drive d0 'mpirun --version' | head -n 1)
    [ "$own" = "$other" ] || { skip MPI "this machine has $own, drives $other"; return 1; }
    expect 0 mpi-up.log inside "$recipes/mpi/up" 1
}
# Kills a drive with a rank, process and operating system at once. The job ends, the drive is named,
# and what is not done is listed. Sets `took` to the seconds from one to the other.
lose_rank() {
    cat >waits <<'SCRIPT'
#!/bin/sh
# The folder of the journal is on the host alone.
if [ -d "$(dirname "$CSD_JOURNAL")" ]; then
    printf 'todo d1/a\ntodo d1/b\ndone d1/a\n' >"$CSD_JOURNAL"
    echo >begun
fi
exec sleep 1000000
SCRIPT
    chmod +x waits
    inside "$recipes/mpi/run" ./waits >lost.log 2>&1 &
    local job=$! code=0 at
    until_seen $job [ -e begun ]
    kill_drive d1
    at=$SECONDS
    wait $job || code=$?
    took=$((SECONDS - at))
    [ $code != 0 ] && [ $took -lt $hang_s ] || { echo "exit code $code after $took s" >&2; exit 1; }
    grep -q "error: drive d1 ($network.3)" lost.log
    [ "$(cat csd-array/mpi/left)" = d1/b ]
    inside "$CSD" --quiet array up >again.log 2>&1
}
# Starts Hadoop. Returns false, and says why, where its jars cannot be had.
start_hadoop() {
    export HADOOP_BLOCK=2097152
    command -v java >/dev/null && command -v mvn >/dev/null || {
        skip Hadoop "no Java or no Maven (apt-get install openjdk-17-jre-headless maven)"
        return 1
    }
    # Outside the namespace, which has no way to a mirror. One that is out of reach fails nothing.
    timeout 300 "$recipes/hadoop/jars" >jars.log 2>&1 || { skip Hadoop "no jars: $(tail -n 1 jars.log)"; return 1; }
    inside "$recipes/hadoop/up" >hadoop.log 2>&1 || { cat hadoop.log >&2; exit 1; }
}
hadoop() { inside "$recipes/hadoop/run" "$@"; }
# Starts drives that were killed again, with their daemons. HDFS is whole once they have said what
# they have.
is_healthy() { hadoop fsck / 2>/dev/null | grep HEALTHY >/dev/null; }
start_again() {
    inside "$CSD" --quiet array up >again.log 2>&1
    expect 0 up.log inside "$recipes/hadoop/up"
    eventually is_healthy
}
# Prints the checksum of rows of TeraSort in a folder of HDFS.
sum_of_rows() { hadoop fs -cat "$1/part*" 2>/dev/null | "$python" "$root/tests/cluster/rows.py"; }
# Compares rows of TeraSort with the checksum of their input, by Hadoop's own check too.
validate_rows() { # validate_rows FOLDER CHECKSUM
    expect 0 validate.log hadoop teravalidate "$1" "$1-report"
    [ "$(sum_of_rows "$1")" = "$2" ]
    local report
    report=$(hadoop fs -cat "$1-report/part*" 2>/dev/null)
    [ "$report" = "checksum	$2" ] || { echo "teravalidate: $report" >&2; exit 1; }
}
