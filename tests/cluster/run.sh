#!/usr/bin/env bash
# Open MPI and Hadoop, unmodified, on this machine and two drives: `tests/cluster/run.sh CSD PYTHON`.
# The recipes of recipes/ are run as a user runs them, in a network namespace. Answers are compared
# with NumPy and Python; one drive is killed in each part. What is missing is said, and skips a part.
set -euo pipefail
cd "$(dirname "$0")/../.."
CSD=$(realpath "${1:?name the program}") python=$(realpath -s "${2:?name a Python with NumPy}")
export CSD
root=$PWD
begun=$SECONDS passed=0 skipped=0
skip() { # skip PART WHY
    echo "SKIPPED cluster, $1: $2"
    skipped=$((skipped + 1))
}
ended() {
    echo "$passed passed, 0 failed, $skipped skipped"
    exit 0
}
for tool in runc losetup mke2fs ip ssh ssh-keygen mmdebstrap; do
    command -v "$tool" >/dev/null || { skip all "no $tool"; ended; }
done
[ "$(id -u)" = 0 ] || { skip all "needs root"; ended; }
[ -e /dev/net/tun ] && [ -e /dev/fuse ] || { skip all "no /dev/net/tun or no /dev/fuse"; ended; }
packaging/os/make.sh build/os/root full || { skip all "no image could be made"; ended; }
work=$(mktemp -d) space=csd$$cluster
cleanup() {
    local code=$?
    [ $code = 0 ] || { echo "FAILED; what was said:"; tail -n 20 "$work"/*.log 2>/dev/null; } >&2
    inside "$root/recipes/hadoop/down" >/dev/null 2>&1 || true
    inside "$CSD" array down --delete --yes >/dev/null 2>&1 || true
    ip netns delete "$space" || true
    rm -rf --one-file-system "$work"
}
inside() { (cd "$work" && nsenter --net="/run/netns/$space" "$@"); }
ip netns add "$space"
trap cleanup EXIT
ip -n "$space" link set lo up
cd "$work"
ssh-keygen -q -t ed25519 -N '' -f key
inside "$CSD" --quiet array up --drives 2 --size 2G --kv 10% --os "$root/build/os/root" \
    --os-cpus 0.9 --os-memory 2G --os-key key.pub --os-network 10.81.0.1/24
recipes=$root/recipes
in_drive() { inside ssh -F csd-array/ssh_config -o BatchMode=yes "$@"; }
kill_drive() { "$python" "$root/tests/cluster/kill.py" csd-array.toml "$1"; }
done_with() {
    echo "ok cluster, $1 ($((SECONDS - begun)) s)"
    passed=$((passed + 1))
}
# Fails with the output of a command that ends with another exit code.
expect() { # expect CODE LOG COMMAND...
    local wanted=$1 log=$2 code=0
    shift 2
    "$@" >"$log" 2>&1 || code=$?
    [ $code = "$wanted" ] || { echo "exit code $code, not $wanted: $*" >&2; exit 1; }
}

if ! command -v mpirun >/dev/null || ! command -v mpicc >/dev/null || [ ! -e /usr/include/fftw3.h ]; then
    skip MPI "no Open MPI or no FFTW (apt-get install openmpi-bin libopenmpi-dev libfftw3-dev)"
else
    expect 0 mpi-up.log inside "$recipes/mpi/up" 1
    mpicc -O2 -Wall -o dft "$recipes/mpi/dft.c" -lfftw3 -lm
    seed=1
    for name in host d0 d1; do
        "$python" "$recipes/mpi/objects.py" make "$name" $seed 200 50 5
        seed=$((seed + 1))
    done
    mkdir cubes && cp host/* cubes/
    for name in d0 d1; do
        tar -C $name -cf - . | in_drive $name "mkdir -p '$work/cubes' && tar -C '$work/cubes' -xf -"
    done
    expect 0 dft.log inside "$CSD" meter -o job.json -- "$recipes/mpi/run" ./dft "$work/cubes"
    grep -q '^765 objects' dft.log
    for name in d0 d1; do
        in_drive $name "tar -C '$work/cubes' -cf - ." | tar -C $name -xf -
        "$python" "$recipes/mpi/objects.py" check $name
    done
    "$python" "$recipes/mpi/objects.py" check cubes
    "$python" - <<'PYTHON'
import json
job = json.load(open("job.json"))["result"]
assert not job["failed"] and job["wall_s"] > 0 and job["cpu_s"]["host"] > 0, job
assert [drive["name"] for drive in job["drives"]] == ["d0", "d1"], job
for drive in job["drives"]:
    assert drive["os_cpu_s"] > 0 and drive["tunnel_sent_bytes"] > 0, drive
PYTHON
    done_with "MPI: transforms of host and drives are NumPy's, and the job was metered"
    # A drive that is gone: some objects are left, and a second job does only those.
    # A killed drive loses what was not synced.
    in_drive d1 "rm '$work'/cubes/1d-0000*.dft && sync -f '$work/cubes'"
    cat >waits <<'SCRIPT'
#!/bin/sh
# The folder of the journal is on the host alone.
if [ -d "$(dirname "$CSD_JOURNAL")" ]; then
    printf 'todo d1/a\ntodo d1/b\ndone d1/a\n' >"$CSD_JOURNAL"
    echo >begun
fi
exec sleep 1000
SCRIPT
    chmod +x waits
    inside "$recipes/mpi/run" ./waits >lost.log 2>&1 &
    job=$! at=$SECONDS
    until [ -e begun ]; do sleep 0.1; kill -0 $job || exit 1; done
    kill_drive d1
    code=0
    wait $job || code=$?
    [ $code != 0 ] && [ $((SECONDS - at)) -le 60 ] || { echo "exit code $code after $((SECONDS - at)) s" >&2; exit 1; }
    grep -q 'error: drive d1 .10.81.0.3.' lost.log
    [ "$(cat csd-array/mpi/left)" = d1/b ]
    inside "$CSD" --quiet array up >again.log 2>&1
    expect 0 dft2.log inside "$recipes/mpi/run" ./dft "$work/cubes"
    grep -q '^100 objects' dft2.log
    done_with "MPI: a drive that is gone is named, and a second job does what is left"
fi

if ! command -v java >/dev/null || ! command -v mvn >/dev/null; then
    skip Hadoop "no Java or no Maven (apt-get install openjdk-17-jre-headless maven)"
elif ! HADOOP_BLOCK=2097152 inside "$recipes/hadoop/up" >hadoop.log 2>&1; then
    # A mirror out of reach fails nothing.
    grep -q 'error: Maven' hadoop.log && skip Hadoop "no jars" && ended
    exit 1
else
    hadoop() { inside "$recipes/hadoop/run" "$@"; }
    # No daemon of this machine listens elsewhere.
    ports=$(inside ss -ltnpH | awk '/"java"/ { print $4 }')
    [ "$(wc -l <<<"$ports")" -ge 6 ] && ! grep -v '10\.81\.0\.1' <<<"$ports"
    "$python" "$recipes/hadoop/words.py" make text 1 2 10000
    expect 0 put.log hadoop fs -put "$work/text" /in
    expect 0 wordcount.log hadoop wordcount -Dmapreduce.job.reduces=2 /in /out
    hadoop fs -cat '/out/part*' 2>/dev/null | "$python" "$recipes/hadoop/words.py" check text
    expect 255 exists.log hadoop wordcount /in /out
    grep -q 'already exists' exists.log
    done_with "Hadoop: WordCount has Python's counts"
    expect 0 teragen.log hadoop teragen -Dmapreduce.job.maps=2 100000 /rows
    sum() { hadoop fs -cat "$1/part*" 2>/dev/null | "$python" "$root/tests/cluster/rows.py"; }
    before=$(sum /rows)
    hadoop terasort -Dmapreduce.job.reduces=2 -Dmapreduce.terasort.output.replication=2 /rows /sorted \
        >terasort.log 2>&1 &
    job=$!
    until grep -qE 'map [1-9]' terasort.log; do sleep 0.2; kill -0 $job; done
    kill_drive d1
    wait $job
    expect 0 validate.log hadoop teravalidate /sorted /report
    [ "$(sum /sorted)" = "$before" ]
    report=$(hadoop fs -cat '/report/part*' 2>/dev/null)
    [ "$report" = "checksum	$before" ] || { echo "teravalidate: $report" >&2; exit 1; }
    inside "$CSD" --quiet array up >again.log 2>&1
    HADOOP_BLOCK=2097152 expect 0 up.log inside "$recipes/hadoop/up"
    hadoop fsck / 2>/dev/null | grep -q HEALTHY
    done_with "Hadoop: TeraSort with a drive killed has all rows, in order"
fi
ended
