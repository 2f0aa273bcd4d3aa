# Parts of the long lane: jobs of Hadoop, and what they make of bad inputs.

# The recipe knows where it keeps them.
jars=$(here=$recipes/hadoop && . "$here/lib.sh" && echo "$jars")

# Compiles the tests' own classes against Hadoop's jars, into own.jar.
compile() {
    command -v javac >/dev/null && command -v jar >/dev/null && command -v curl >/dev/null || {
        skip "jobs of Hadoop" "no compiler of Java or no curl (apt-get install openjdk-17-jdk-headless curl)"
        return 1
    }
    mkdir -p classes
    javac -nowarn -cp "$jars/*" -d classes "$root"/tests/cluster/{Pairs,Greedy}.java >javac.log 2>&1 &&
        jar -cf own.jar -C classes . || { cat javac.log >&2; exit 1; }
}

part_sort() {
    local text=org.apache.hadoop.io.Text
    expect 0 writer.log hadoop randomtextwriter -Dmapreduce.randomtextwriter.totalbytes=6000000 \
        -Dmapreduce.randomtextwriter.bytespermap=2000000 /random
    expect 0 sort.log hadoop sort -r 2 -outKey $text -outValue $text \
        -inFormat org.apache.hadoop.mapreduce.lib.input.SequenceFileInputFormat \
        -outFormat org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat \
        /random /random-sorted
    hadoop fs -text '/random/part*' >before 2>fs.log
    hadoop fs -text '/random-sorted/part*' >after 2>fs.log
    "$python" "$root/tests/cluster/sorted.py" before after 2
    done_with "Hadoop: Sort has all keys and values of its input, in order"
}

part_terasort() {
    expect 0 teragen.log hadoop teragen -Dmapreduce.job.maps=2 100000 /rows
    expect 0 terasort.log hadoop terasort -Dmapreduce.job.reduces=2 /rows /sorted
    validate_rows /sorted "$(sum_of_rows /rows)"
    done_with "Hadoop: TeraSort's checksum is that of its input"
}

part_own_class() {
    expect 0 own.log hadoop jar "$work/own.jar" Pairs -Dmapreduce.job.reduces=2 /in /own
    hadoop fs -cat '/own/part*' 2>fs.log | "$python" "$root/tests/cluster/pairs.py" text
    done_with "Hadoop: a class of our own has Python's counts"
}

part_names_gone() {
    expect 0 down.log inside "$recipes/hadoop/down"
    mv csd-array/hadoop/nn away
    expect 2 up.log inside "$recipes/hadoop/up"
    grep -q 'put that folder back' up.log
    mv away csd-array/hadoop/nn
    start_again
    done_with "Hadoop: blocks whose names are gone are not formatted away"
}

# Runs an example on this machine's own files in one process, without drives, as a reference.
plain() { inside java -Xmx1g -cp "$jars/*" org.apache.hadoop.examples.ExampleDriver "$@"; }

# Runs an example on a folder, on drives and without: exit code and answer are the same.
same_as_plain() { # same_as_plain NAME PROGRAM OPTION...
    local name=$1 program=$2 wanted=0 found=0
    shift 2
    plain "$program" "$@" "$work/bad/$name" "$work/plain/$name" >plain.log 2>&1 || wanted=$?
    hadoop "$program" "$@" "/bad/$name" "/bad-answers/$name" >bad.log 2>&1 || found=$?
    [ $found = $wanted ] || { echo "$name: exit code $found, not $wanted" >&2; exit 1; }
    [ $found = 0 ] || return 0
    cat "plain/$name"/part* | LC_ALL=C sort >wanted
    hadoop fs -cat "/bad-answers/$name/part*" 2>fs.log | LC_ALL=C sort >found
    cmp wanted found
}

# Prints the connections that a drive's DataNode has refused because it had too many.
refused() { in_drive "$1" 'grep -ac "exceeds the limit" /var/log/csd/datanode.log || true'; }

part_bad_inputs() {
    local before
    before="$(refused d0) $(refused d1)"
    mkdir -p bad/{empty,long,bytes,many} plain
    : >bad/empty/file
    # One line of 64 MB: a million words of 63 letters, few of them different.
    "$python" - <<'PYTHON'
import pathlib, random
rng = random.Random(7)
words = ["".join(rng.choices("abcdefgh", k=63)) for _ in range(1000)]
pathlib.Path("bad/long/file").write_text(" ".join(rng.choices(words, k=1_000_000)))
pathlib.Path("bad/bytes/file").write_bytes(
    b"\n".join(bytes(rng.choices(range(128, 256), k=40)) + b" word \xff\xfe\x00 \xc3" for _ in range(2000)))
for number in range(1000):
    pathlib.Path(f"bad/many/{number:04}").write_text(" ".join(rng.choices(words, k=5)) + "\n")
PYTHON
    expect 0 put.log hadoop fs -put "$work/bad" /
    same_as_plain empty wordcount
    [ ! -s found ]
    same_as_plain long wordcount -Dmapreduce.map.memory.mb=1024 -Dmapreduce.map.java.opts=-Xmx800m
    same_as_plain bytes wordcount
    # A task for each of the 1,000 files would mostly start processes; this one takes several.
    same_as_plain many multifilewc
    [ "$(wc -l <found)" -gt 900 ]
    [ "$(refused d0) $(refused d1)" = "$before" ] || { echo "DataNodes refused connections" >&2; exit 1; }
    done_with "Hadoop: empty, long, many and broken inputs have the answers of one machine"
    same_as_plain none wordcount
    grep -q 'Input path does not exist' bad.log
    same_as_plain empty wordcount
    grep -q 'already exists' bad.log
    done_with "Hadoop: inputs that are missing and outputs that exist end with the codes of one machine"
}
