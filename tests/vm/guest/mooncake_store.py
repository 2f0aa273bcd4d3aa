"""Mooncake Store over the drive: stores, forgets its copies in memory, and reads back on request.

Prints ``forgotten`` once objects are on the drive only, and waits for a line on standard input.
The arguments are the drive's device and the namespace. Master and store are the wheel's own. The
check that runs this limits its time.
"""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable

PACKAGE = "/opt/mooncake"
FOLDER = "/tmp/mooncake"
MASTER = "127.0.0.1:50551"
MIB = 1 << 20
SEGMENT_BYTES = 32 * MIB
LEASE_MS = 3000
# Longest value of the small drive here; Mooncake's default is 270,336.
VALUE_BYTES_MAX = 256 << 10
# Of one value, and of several with a manifest.
SIZES = (1, 1000, 70_000, 262_144, 300_000, MIB, 3 * MIB)

sys.path.insert(0, PACKAGE)
os.environ.update(
    {
        "MOONCAKE_OFFLOAD_STORAGE_BACKEND_DESCRIPTOR": "nvme_kv_storage_backend",
        "MOONCAKE_OFFLOAD_FILE_STORAGE_PATH": FOLDER,
        "MOONCAKE_OFFLOAD_LOCAL_BUFFER_SIZE_BYTES": str(SEGMENT_BYTES),
        "MOONCAKE_OFFLOAD_HEARTBEAT_INTERVAL_SECONDS": "1",
        # Values of their own lengths. Mooncake pads them to this, and refuses a last chunk that the
        # drive reports with its padding.
        "MOONCAKE_NVME_KV_TRANSFER_ALIGNMENT_BYTES": "1",
        # A read that takes longer than this is void; under emulation reads are slow.
        "MOONCAKE_OFFLOAD_CLIENT_BUFFER_GC_TTL_MS": "600000",
        "MOONCAKE_NVME_KV_DEVICE_PATH": sys.argv[1],
        "MOONCAKE_NVME_KV_NSID": sys.argv[2],
        "MOONCAKE_NVME_KV_RUNTIME_TRANSFER_LIMIT": str(VALUE_BYTES_MAX),
        "MC_STORE_CLIENT_METRIC": "0",
        "GLOG_logtostderr": "1",
    }
)

from mooncake.store import MooncakeDistributedStore  # noqa: E402


def content(name: str, size: int) -> bytes:
    """Return bytes that only this name has."""
    return hashlib.shake_128(name.encode()).digest(size)


def until(done: Callable[[], bool]) -> None:
    """Wait until something is so."""
    while not done():
        time.sleep(0.2)


def work() -> None:
    """Store, forget, wait, read back."""
    store = MooncakeDistributedStore()
    sizes = (SEGMENT_BYTES, SEGMENT_BYTES)
    setup = ("127.0.0.1:50552", "P2PHANDSHAKE", *sizes, "tcp", "", MASTER, None, True, FOLDER)
    # The master may not listen yet.
    until(lambda: store.setup(*setup) == 0)
    objects = {f"object-{number}": content(str(number), size) for number, size in enumerate(SIZES)}

    def places(name: str) -> tuple[bool, bool]:
        replicas = store.get_replica_desc(name)
        in_memory = any(replica.is_memory_replica() for replica in replicas)
        return in_memory, any(replica.is_local_disk_replica() for replica in replicas)

    for name, value in objects.items():
        assert store.put(name, value) == 0, name
    until(lambda: all(places(name)[1] for name in objects))
    print("on the drive", flush=True)
    filled = 0

    def forgotten() -> bool:
        # To look at an object is to lease it, and leased objects stay.
        nonlocal filled
        time.sleep(1.5 * LEASE_MS / 1000)
        # Other objects push these out of the memory.
        for _ in range(8):
            store.put(f"other-{filled}", content(f"other-{filled}", MIB))
            filled += 1
        time.sleep(1.5 * LEASE_MS / 1000)
        return all(places(name) == (False, True) for name in objects)

    until(forgotten)
    print("forgotten", flush=True)
    sys.stdin.readline()
    for name, value in objects.items():
        assert store.get(name) == value, f"{name}: other bytes"
    store.close()
    print(f"read back {len(objects)} objects, after {filled} others", flush=True)


def main() -> None:
    """Run the wheel's master next to the work."""
    os.makedirs(FOLDER, exist_ok=True)
    options = [
        "--enable_offload=true",
        f"--default_kv_lease_ttl={LEASE_MS}",
        "--eviction_ratio=1",
    ]
    options += ["--eviction_high_watermark_ratio=0.5", f"--rpc_port={MASTER.partition(':')[2]}"]
    master = subprocess.Popen([f"{PACKAGE}/mooncake/mooncake_master", *options])
    try:
        work()
    finally:
        master.kill()
        master.wait()


if __name__ == "__main__":
    main()
