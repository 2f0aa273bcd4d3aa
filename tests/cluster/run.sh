#!/usr/bin/env bash
# Open MPI and Hadoop, unmodified, on this machine and two drives: `tests/cluster/run.sh CSD PYTHON`.
# The recipes of recipes/ are run as a user runs them, in a network namespace. Answers are compared
# with NumPy and Python; one drive is killed in each part. What is missing is said, and skips a part.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/cluster/common.sh
need_machine
start_array 2G

if start_mpi; then
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
    # Some objects are left, and a second job does only those. A killed drive loses what was not
    # synced.
    in_drive d1 "rm '$work'/cubes/1d-0000*.dft && sync -f '$work/cubes'"
    lose_rank
    expect 0 dft2.log inside "$recipes/mpi/run" ./dft "$work/cubes"
    grep -q '^100 objects' dft2.log
    done_with "MPI: a drive that is gone ends a job after $took s, and a second job does what is left"
fi

if start_hadoop; then
    # No daemon of this machine listens elsewhere.
    ports=$(inside ss -ltnpH | awk '/"java"/ { print $4 }')
    [ "$(wc -l <<<"$ports")" -ge 6 ]
    if grep -v "$network.1" <<<"$ports"; then exit 1; fi
    "$python" "$recipes/hadoop/words.py" make text 1 2 10000
    expect 0 put.log hadoop fs -put "$work/text" /in
    expect 0 wordcount.log inside "$CSD" meter -o job.json -- \
        "$recipes/hadoop/run" wordcount -Dmapreduce.job.reduces=2 /in /out
    # Both drives have every block, so each map is next to its own. A task that a busy machine has
    # begun twice counts twice.
    "$python" - <<'PYTHON'
import json
tasks = json.load(open("job.json"))["result"]["tasks"]
assert tasks["jobs"] == 1 and tasks["maps"] >= 2 and tasks["reduces"] >= 2, tasks
places = tasks["maps_data_local"], tasks["maps_rack_local"], tasks["maps_other"]
assert places == (tasks["maps"], 0, 0), tasks
PYTHON
    hadoop fs -cat '/out/part*' 2>/dev/null | "$python" "$recipes/hadoop/words.py" check text
    expect 255 exists.log hadoop wordcount /in /out
    grep -q 'already exists' exists.log
    done_with "Hadoop: WordCount has Python's counts, and its tasks were counted"
    expect 0 teragen.log hadoop teragen -Dmapreduce.job.maps=2 100000 /rows
    before=$(sum_of_rows /rows)
    hadoop terasort -Dmapreduce.job.reduces=2 -Dmapreduce.terasort.output.replication=2 /rows /sorted \
        >terasort.log 2>&1 &
    job=$!
    until_seen $job grep -qE 'map [1-9]' terasort.log
    kill_drive d1
    wait $job
    validate_rows /sorted "$before"
    start_again
    done_with "Hadoop: TeraSort with a drive killed has all rows, in order"
fi
ended
