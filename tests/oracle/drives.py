"""Page rank of Debian's dependencies: in drives, on the host, on both, and by networkx.

Run by ``make oracle`` after ``check.py``. The edges come from this machine's own package lists. All
three ways must give the same bits, and networkx the same ranks to 1e-12. Exits with 1 if not.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import networkx
import numpy as np
from check import TOLERANCE, expect, packages

DRIVES = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csd", type=Path, required=True, help="the csd binary")
    csd = parser.parse_args().csd.resolve()
    found = packages()
    if found is None:
        sys.exit("this machine has no package lists")
    nodes, edges, source = found
    with tempfile.TemporaryDirectory() as folder:

        def run(*words: str) -> bytes:
            done = subprocess.run([csd, *words], cwd=folder, check=True, capture_output=True)
            return done.stdout

        np.savetxt(Path(folder) / "edges.txt", edges, fmt="%d")
        run("array", "up", "--drives", str(DRIVES), "--size", "256M", "--media", "memory")
        try:
            # A total here, of each node in networkx.
            total = ["--tolerance", str(nodes * TOLERANCE)]
            graph = ["packages", "--edges", "edges.txt", "--nodes", str(nodes), "--base", "0"]
            said = run("run", "page-rank", *graph, *total, "-o", "ranks", "--on", "all", "--json")
            ranks = np.frombuffer(run("get", "ranks", "-"), dtype="<f8")
        finally:
            run("array", "down", "--delete", "--yes")
    result = json.loads(said)["result"]
    multigraph = networkx.MultiDiGraph()
    multigraph.add_nodes_from(range(nodes))
    multigraph.add_edges_from(edges.tolist())
    expected = networkx.pagerank(multigraph, tol=TOLERANCE)
    worst = max(abs(rank - expected[node]) for node, rank in enumerate(ranks))
    expect("number of ranks", len(ranks) == nodes)
    expect(f"ranks differ from networkx by {worst}", worst < 1e-12)
    crossed = {run["on"]: run["crossed_bytes"] for run in result["runs"]}
    expect("all three ways were compared", set(crossed) == {"drives", "host", "split"})
    print(
        f"{nodes} packages and {len(edges)} dependencies from {source}: drives, host, both and "
        f"networkx agree to {worst:.1e} after {result['iterations']} steps; crossed {crossed}"
    )


if __name__ == "__main__":
    main()
