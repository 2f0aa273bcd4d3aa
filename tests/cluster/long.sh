#!/usr/bin/env bash
# The long lane: `tests/cluster/long.sh CSD PYTHON [PART...]`, parts as below (all by default).
# Jobs of Hadoop, MPI and Spark on this machine and two drives, on bad inputs, and with faults: drives
# killed, a link cut, tasks that take all they can get. Faults come at events of the job, not after a
# time: the tests' own class makes tasks wait. What is missing is said, and skips a part.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/cluster/common.sh
chosen=("${@:3}")
for file in tests/cluster/long/*.sh; do . "$file"; done
for part in "${chosen[@]}"; do
    declare -F "part_$part" >/dev/null || { echo "$part is no part" >&2; exit 2; }
done
need_machine
start_array 3G

# Runs parts, those that were named or all.
run_parts() { # run_parts PART...
    local part
    for part in "$@"; do
        [[ ${#chosen[@]} -gt 0 && " ${chosen[*]} " != *" $part "* ]] || "part_$part"
    done
}
if start_mpi; then
    run_parts mpi_whole mpi_restart mpi_lost
fi
if start_hadoop && compile; then
    "$python" "$recipes/hadoop/words.py" make text 1 8 2500
    expect 0 put.log hadoop fs -put "$work/text" /in
    run_parts sort terasort own_class names_gone bad_inputs lost_maps lost_shuffle lost_output lost_block \
        cut_link tunnel_killed greedy_memory greedy_processes greedy_disk spark spark_lost
fi
ended
