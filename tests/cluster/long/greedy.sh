# Parts of the long lane: maps that take all they can get. The first attempt does so and fails with its
# cause; the second one copies its lines. Another job goes on meanwhile, and so do all daemons.

daemons() {
    inside "$CSD" os status --json | "$python" -c '
import json, sys
for drive in json.load(sys.stdin)["result"]["drives"]:
    print(drive["name"], drive["state"], sorted((one["name"], one["pid"]) for one in drive["services"]))'
}
space_of() { in_drive "$1" "df -B1M --output=used /data | tail -n 1"; }
back_to() { # back_to DRIVE MIB: all but 32 MiB of what was taken is free again
    [ "$(space_of "$1")" -le $(($2 + 32)) ]
}

greedy() { # greedy WHAT CAUSE
    local before drive other=0
    local -A used
    before=$(daemons)
    for drive in d0 d1; do used[$drive]=$(space_of $drive); done
    hadoop wordcount -Dmapreduce.job.reduces=1 /in "/next-to-$1" >next.log 2>&1 &
    other=$!
    expect 0 greedy.log hadoop jar "$work/own.jar" Greedy "$1" /in/part-0 "/greedy-$1"
    grep -q 'Status : FAILED' greedy.log
    grep -qE "$2" greedy.log || { echo "no cause '$2' is named" >&2; exit 1; }
    hadoop fs -cat "/greedy-$1/part*" 2>fs.log | cmp - text/part-0
    wait $other
    hadoop fs -cat "/next-to-$1/part*" 2>fs.log | "$python" "$recipes/hadoop/words.py" check text
    [ "$(daemons)" = "$before" ] || { echo "other daemons run:"; echo "$before"; daemons; exit 1; } >&2
    for drive in d0 d1; do eventually back_to $drive "${used[$drive]}"; done
}

part_greedy_memory() {
    greedy memory 'beyond the .?PHYSICAL.? memory limit|exit code is 137|Exit code is 137'
    done_with "Hadoop: a map that eats memory fails with its cause, and all else goes on"
}
part_greedy_processes() {
    greedy processes 'native thread.*process/resource limits reached|Resource temporarily unavailable'
    local drive
    for drive in d0 d1; do eventually in_drive $drive '! pgrep -x sleep >/dev/null'; done
    done_with "Hadoop: a map that starts processes without end fails with its cause, and all else goes on"
}
part_greedy_disk() {
    greedy disk 'No space left on device'
    done_with "Hadoop: a map that fills /data fails with its cause, and its space comes back"
}
