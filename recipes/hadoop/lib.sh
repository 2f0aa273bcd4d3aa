# Shared by the recipe of Hadoop: folders, Java's options, the daemons of this machine.
. "$here/../lib.sh"
version=3.4.2
jars=${HADOOP_JARS:-${XDG_CACHE_HOME:-$HOME/.cache}/csd/hadoop-$version}
# Stands for a folder of jars that has all of them.
complete=complete-$(cksum <"$here/pom.xml" | cut -d' ' -f1)
java_options=(-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData
    --add-opens java.base/java.lang=ALL-UNNAMED)

# Runs Java with Hadoop's classes on this machine. The drives' names are in the array's folder.
head_java() { # head_java HEAP CLASS ARGUMENT...
    local heap=$1
    shift
    java "${java_options[@]}" -Xmx"$heap" -Djdk.net.hosts.file="$folder/hosts" \
        -cp "$folder/hadoop/conf:$jars/*" "$@"
}

start_head() { # start_head NAME HEAP CLASS
    head_runs "$1" && return
    setsid bash -c 'echo $$ >"$1"; shift; exec "$@"' sh "$folder/hadoop/$1.pid" \
        java "${java_options[@]}" -Xmx"$2" -Dcsd.daemon="$folder/$1" \
        -Djdk.net.hosts.file="$folder/hosts" -cp "$folder/hadoop/conf:$jars/*" "$3" \
        >"$folder/hadoop/$1.log" 2>&1 </dev/null &
    local started=$!
    disown
    # Until then head_runs says that it has ended.
    until head_runs "$1" || ! kill -0 "$started" 2>/dev/null; do sleep 0.05; done
}

# Asks a daemon, waits, and ends it: one that retries a connection ignores the question for long.
stop_head() { # stop_head NAME
    local pid
    if head_runs "$1"; then
        pid=$(cat "$folder/hadoop/$1.pid")
        kill "$pid" 2>/dev/null || true
        for _ in $(seq 100); do head_runs "$1" || break; sleep 0.1; done
        if head_runs "$1"; then kill -KILL "$pid" 2>/dev/null || true; fi
    fi
    rm -f "$folder/hadoop/$1.pid"
}

# Returns the number of live DataNodes and of NodeManagers, as the head counts them.
live() {
    python3 - "$(address_of host)" <<'PYTHON'
import json, sys, urllib.request
def ask(url):
    with urllib.request.urlopen(url, timeout=3) as answer:
        return json.load(answer)
host = sys.argv[1]
try:
    beans = ask(f"http://{host}:9870/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState")["beans"]
    data = beans[0]["NumLiveDataNodes"] if beans else 0
    nodes = ask(f"http://{host}:8088/ws/v1/cluster/metrics")["clusterMetrics"]["activeNodes"]
    print(data, nodes)
except OSError:
    print(0, 0)
PYTHON
}
