"""Jobs of a cluster: those of HiBench, by examples of Hadoop itself, and transforms by MPI."""

import json
import re
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from clusters import NETWORK, RECIPES, Cluster, Ran, metered
from compared import run
from csdplan.jobs.hadoop import Counters, counters

TEXT = "org.apache.hadoop.io.Text"
LIB = "org.apache.hadoop.mapreduce.lib"
SEQUENCES = f"{LIB}.input.SequenceFileInputFormat"
#: As many in every run: each drive of two has one. They begin after the last map, so that the two
#: phases stand apart, as in the planner's model.
REDUCES = 2
BOTH_PHASES = (
    f"-Dmapreduce.job.reduces={REDUCES}",
    "-Dmapreduce.job.reduce.slowstart.completedmaps=1",
)
JOBS = ("wordcount", "sort", "terasort")
#: Of each job; the text is of sequence files.
INPUTS = {"wordcount": "text", "sort": "text", "terasort": "rows"}
ROW_BYTES = 100
#: Progress of maps and reduces, percent, between which the shuffle lies.
ALL, FETCHED = 100, 33
WRITERS = 4


@dataclass
class Done:
    """A job of Hadoop that is done."""

    ran: Ran
    counted: Counters
    log: str
    name: str

    def figures(self) -> dict[str, object]:
        """Return what a record keeps of it."""
        return self.ran.figures() | {"counters": asdict(self.counted)}


class Hadoop:
    """Hadoop on a cluster, by its recipe."""

    def __init__(self, cluster: Cluster, block: int) -> None:
        self.cluster = cluster
        self.environment = ("env", f"HADOOP_BLOCK={block}")
        self.folder = cluster.array.with_suffix("") / "hadoop"

    def up(self, stack: ExitStack) -> None:
        """Start the daemons; the stack stops them."""
        run(None, RECIPES / "hadoop/jars")
        # Also after an interruption in the middle of it.
        stack.callback(self.cluster.run, RECIPES / "hadoop/down")
        self.cluster.run(*self.environment, RECIPES / "hadoop/up")

    def fs(self, *words: object) -> str:
        """Run a command of HDFS's shell."""
        return self.cluster.run(RECIPES / "hadoop/run", "fs", *words)

    def pids(self) -> tuple[int, ...]:
        """Return the daemons of the host."""
        names = ("namenode", "resourcemanager", "historyserver")
        return tuple(int((self.folder / f"{name}.pid").read_text()) for name in names)

    def make_inputs(self, jobs: list[str], size: int) -> None:
        """Make the inputs of these jobs, each of so many bytes."""
        for kind in sorted({INPUTS[job] for job in jobs}):
            self.make_input(kind, size)

    def make_input(self, kind: str, size: int) -> None:
        """Make an input of so many bytes; there is one of each kind and size."""
        path = f"/{kind}-{size}"
        if kind == "rows":
            words = ("teragen", "-Dmapreduce.job.maps=2", size // ROW_BYTES, path)
        else:
            each = size // WRITERS
            option = "-Dmapreduce.randomtextwriter"
            words = (
                "randomtextwriter", f"{option}.totalbytes={size}",
                f"{option}.bytespermap={each}", path,
            )  # fmt: skip
        self.cluster.run(RECIPES / "hadoop/run", *words)

    def run(self, job: str, size: int) -> Done:
        """Run a job on the input of this size, and meter it."""
        source, out = f"/{INPUTS[job]}-{size}", f"/{job}-out"
        self.fs("-rm", "-r", "-f", "-skipTrash", out)
        copies = min(2, len(self.cluster.names))
        match job:
            case "wordcount":
                more: tuple[object, ...] = (f"-Dmapreduce.job.inputformat.class={SEQUENCES}",)
            case "sort":
                of_output = SEQUENCES.replace("input", "output").replace("InputF", "OutputF")
                more = (
                    "-r", REDUCES, "-outKey", TEXT, "-outValue", TEXT, "-inFormat", SEQUENCES,
                    "-outFormat", of_output,
                )  # fmt: skip
            case _:
                # TeraSort's own scheduler would name one drive of each block's two to YARN.
                more = (
                    f"-Dmapreduce.terasort.output.replication={copies}",
                    "-Dmapreduce.terasort.use.terascheduler=false",
                )
        words = (job, *BOTH_PHASES, *more, source, out)
        ran = metered(self.cluster, RECIPES / "hadoop/run", *words, pids=self.pids())
        log = self.cluster.folder / "job.log"
        log.write_text(ran.said)
        names = re.findall(r"Running job: (job_\w+)", ran.said)
        done = Done(ran, counters(log), ran.said, names[-1])
        self._check(job, done)
        return done

    def _check(self, job: str, done: Done) -> None:
        """Check that a job did its work, by what it counted."""
        found = {
            name: int(count)
            for name, count in re.findall(r"^\s*([A-Z][\w -]+)=(\d+)\s*$", done.log, re.MULTILINE)
        }
        read, written = found["Map input records"], found["Reduce output records"]
        moved = found["Map output records"], found["Reduce input records"]
        if job == "wordcount":
            # The combiner makes the two differ.
            right = 0 < written < read * 1000 and moved[0] > written
        else:
            right = read == written == moved[0] == moved[1] > 0
        if not right:
            raise RuntimeError(f"{job}: {read} records in, {moved} moved, {written} out")

    def moved(self, done: Done) -> dict[str, list[tuple[str, int]]]:
        """Return where the tasks of a job ran, and what they moved."""
        host = NETWORK.partition("/")[0]
        script = Path(__file__).with_name("history.py")
        found: dict[str, list[tuple[str, int]]] = json.loads(
            self.cluster.run(sys.executable, script, host, done.name)
        )
        return found


def explained_bytes(done: Done, moved: dict[str, list[tuple[str, int]]], copies: int) -> float:
    """Return the bytes at ends of tunnels that a job's counters explain.

    From drive to drive they count at both. A reduce fetches from each drive its share of what maps
    made there; all copies of the output but the first go to another drive; a map that is not local
    reads its share of the input from another one.
    """
    made = sum(size for _, size in moved["maps"])
    remote = 0.0
    for node, fetched in moved["reduces"]:
        here = sum(size for other, size in moved["maps"] if other == node)
        remote += fetched * (1 - here / made)
    counted = done.counted
    elsewhere = counted.input_bytes * (1 - counted.local_maps / counted.maps)
    return 2 * (remote + (copies - 1) * counted.output_bytes + elsewhere)


def shuffle_window(log: str) -> tuple[float, float] | None:
    """Return begin and end of a job's shuffle, seconds since 1970.

    It begins when the last map has ended, and ends when reduces have done more than a third of
    their work, which is fetching.
    """
    begin = None
    for line in log.splitlines():
        shown = re.match(
            r"(\d+-\d+-\d+ \d+:\d+:\d+),(\d+) .* map (\d+)% reduce (\d+)%", line
        )  # fmt: skip
        if shown is None:
            continue
        text, milliseconds, maps, reduces = shown.groups()
        at = time.mktime(time.strptime(text, "%Y-%m-%d %H:%M:%S")) + int(milliseconds) / 1000
        if begin is None and int(maps) == ALL:
            begin = at
        if begin is not None and int(reduces) > FETCHED:
            return begin, at
    return None


def shuffle(done: Done) -> dict[str, float] | None:
    """Return CPU time of this host's ends of tunnels and of the machine during the shuffle."""
    window = shuffle_window(done.log)
    times = [one for one in done.ran.times if window and window[0] <= one[0] <= window[1]]
    if not times or times[0] is times[-1]:
        return None
    passed = [last - first for first, last in zip(times[0], times[-1], strict=True)]
    return dict(zip(("s", "routing_s", "machine_s"), passed, strict=True))


class Transforms:
    """The transforms of recipes/mpi on a cluster."""

    def __init__(self, cluster: Cluster, program: Path) -> None:
        self.cluster, self.program = cluster, program
        self.objects = cluster.folder / "cubes"

    @staticmethod
    def compile(folder: Path) -> Path:
        """Compile the program."""
        program = folder / "dft"
        source = RECIPES / "mpi/dft.c"
        run(None, "mpicc", "-O2", "-o", program, source, "-lfftw3", "-lm")
        return program

    def make(self, counts: Callable[[str], tuple[int, int, int]]) -> None:
        """Make objects on every machine, as many of each kind as its name gives."""
        script = RECIPES / "mpi/objects.py"
        for seed, name in enumerate(["host", *self.cluster.names]):
            folder = self.cluster.folder / f"objects-{name}" if name != "host" else self.objects
            run(None, sys.executable, script, "make", folder, seed, *counts(name))
            if name != "host":
                packed = folder.with_suffix(".tar")
                run(None, "tar", "-C", folder, "-cf", packed, ".")
                here = f"mkdir -p {self.objects.parent} /data/cubes && ln -sfn /data/cubes"
                unpack = f"{here} {self.objects} && tar -C /data/cubes -xf -"
                self.cluster.in_drive(name, unpack, given=packed.read_bytes())
                run(None, "rm", "-r", folder, packed)

    def empty(self) -> None:
        """Remove all objects, with their transforms."""
        run(None, "rm", "-rf", self.objects)
        for name in self.cluster.names:
            self.cluster.in_drive(name, "rm -rf /data/cubes")

    def clear(self) -> None:
        """Remove all transforms."""
        remove = "find {}/ -name '*.dft' -delete"
        run(None, "sh", "-c", remove.format(self.objects))
        for name in self.cluster.names:
            self.cluster.in_drive(name, remove.format("/data/cubes"))

    def check(self, name: str) -> str:
        """Compare the transforms of a machine with NumPy's."""
        folder = self.objects
        if name != "host":
            folder = self.cluster.folder / f"found-{name}"
            folder.mkdir()
            config = self.cluster.array.with_suffix("") / "ssh_config"
            fetch = f"ssh -F {config} {name} 'tar -C /data/cubes -cf - .' | tar -C {folder} -xf -"
            self.cluster.run("bash", "-o", "pipefail", "-c", fetch)
        return run(None, sys.executable, RECIPES / "mpi/objects.py", "check", folder)


def transforms_s(said: str) -> tuple[int, float]:
    """Return the objects and the seconds of the program's last line."""
    found = re.findall(r"^(\d+) objects in ([\d.]+) s:", said, re.MULTILINE)
    if not found:
        raise RuntimeError(said[-2000:])
    return int(found[-1][0]), float(found[-1][1])
