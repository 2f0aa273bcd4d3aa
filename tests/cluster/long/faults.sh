# Parts of the long lane: faults in jobs of Hadoop. Tasks of the tests' class Pairs wait at gates,
# folders of HDFS, so that a fault comes while the job is where it should be.

# Asks the NameNode, without starting Java.
webhdfs() { # webhdfs METHOD PATH OPERATION
    inside curl -sf -m 20 -X "$1" "http://$network.1:9870/webhdfs/v1$2?user.name=root&op=$3"
}
# Returns true if so many tasks have come to a gate.
gate_has() { # gate_has POINT COUNT
    local list
    list=$(webhdfs GET /gates LISTSTATUS) || return 1
    [ "$(grep -o "\"pathSuffix\":\"$1-[0-9]*\"" <<<"$list" | wc -l)" -ge "$2" ]
}
open_gate() { webhdfs PUT /gates/open MKDIRS >/dev/null; }
start_pairs() { # start_pairs OPTION...
    webhdfs DELETE /gates 'DELETE&recursive=true' >/dev/null
    webhdfs DELETE /pairs 'DELETE&recursive=true' >/dev/null
    hadoop jar "$work/own.jar" Pairs -Dpairs.gates=/gates -Dmapreduce.job.reduces=2 "$@" /in /pairs \
        >pairs.log 2>&1 &
    job=$!
}
# Waits for the end of the job, and compares its answer.
end_pairs() {
    wait "$job"
    hadoop fs -cat '/pairs/part*' 2>fs.log | "$python" "$root/tests/cluster/pairs.py" text
}
# Starts a job of eight maps of which seven are done and the last one waits: reduces copy.
start_shuffle() {
    start_pairs -Dpairs.maps=7 -Dmapreduce.job.reduce.slowstart.completedmaps=0.3
    until_seen "$job" gate_has "done" 7
    until_seen "$job" grep -qE 'reduce [1-9]' pairs.log
}

part_lost_maps() {
    start_pairs -Dpairs.maps=4 -Dmapreduce.job.reduce.slowstart.completedmaps=1
    until_seen "$job" gate_has "done" 4
    until_seen "$job" gate_has map 1
    kill_drive d1
    open_gate
    end_pairs
    start_again
    done_with "Hadoop: a drive is killed at half of the maps, and every count is right"
}

part_lost_shuffle() {
    start_shuffle
    kill_drive d1
    open_gate
    end_pairs
    start_again
    done_with "Hadoop: a drive is killed during shuffle, and every count is right"
}

part_lost_output() {
    start_pairs -Dpairs.keys=50000
    until_seen "$job" gate_has reduce 2
    kill_drive d1
    open_gate
    end_pairs
    start_again
    done_with "Hadoop: a drive is killed while reducers write, and every count is right"
}

# The one holder of a block is killed: no replica is left.
part_lost_block() {
    expect 0 put.log hadoop fs -D dfs.replication=1 -put "$work/text/part-0" /lone
    local block holder at code=0
    hadoop fsck /lone -files -blocks -locations >fsck.log 2>/dev/null
    block=$(grep -o 'blk_[0-9]*' fsck.log | head -n 1)
    holder=$(grep -oE "DatanodeInfoWithStorage\[$network\.[0-9]+" fsck.log | grep -oE '[0-9]+$')
    # Drives have the addresses that follow this machine's.
    holder=d$((holder - 2))
    # A killed drive loses what was not synced, and this is to be whole when it is back.
    in_drive "$holder" 'sync -f /data/hadoop'
    kill_drive "$holder"
    at=$SECONDS
    hadoop wordcount /lone /lone-out >lone.log 2>&1 || code=$?
    local took=$((SECONDS - at))
    [ $code = 1 ] && grep -q "Could not obtain block: .*$block" lone.log ||
        { echo "exit code $code, and no word on $block of $holder" >&2; exit 1; }
    [ $took -le 120 ] || { echo "failed only after $took s" >&2; exit 1; }
    start_again
    webhdfs DELETE /lone DELETE >/dev/null
    done_with "Hadoop: without any replica of a block the job fails after $took s and names it"
}

# Cuts the link to a drive, so that no packet of NVMe/TCP passes, or joins it again.
link() { # link cut|join DRIVE
    local port verb=add side
    port=$("$python" -c '
import sys, tomllib
drives = tomllib.load(open("csd-array.toml", "rb"))["drives"]
print(*(drive["url"].split("/")[2].rsplit(":")[1] for drive in drives if drive["name"] == sys.argv[1]))' "$2")
    if [ "$1" = cut ]; then
        # The rule for this machine's own addresses comes first, unless it is moved.
        ip -n "$space" rule show | grep -q '^10:' || ip -n "$space" rule add pref 10 lookup local
        ip -n "$space" rule delete pref 0 lookup local 2>/dev/null || true
    else
        verb=delete
    fi
    for side in sport dport; do
        ip -n "$space" rule $verb pref 5 ipproto tcp $side "$port" blackhole
    done
}

part_cut_link() {
    start_shuffle
    link cut d1
    open_gate
    local at=$SECONDS
    # It takes 10 s to see that.
    if in_drive -o ConnectTimeout=10 d1 true 2>/dev/null; then
        echo "the link is not cut" >&2
        exit 1
    fi
    # The length of the fault itself.
    until [ $((SECONDS - at)) -ge 20 ]; do sleep 1; done
    link join d1
    end_pairs
    start_again
    done_with "Hadoop: a link is cut for 20 s during shuffle, and every count is right"
}

part_tunnel_killed() {
    start_shuffle
    kill_drive d1 tunnel
    open_gate
    inside "$CSD" --quiet array up >again.log 2>&1
    end_pairs
    start_again
    done_with "Hadoop: the host's end of a tunnel is killed and started again during shuffle"
}
