"""The long form's kernel *host*: a stock kernel in QEMU, with its own NVMe/TCP initiator.

Everything of it is emulated by software. Its root disk is a copy of the lane's image with the
kernel's modules; it is never written to.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from doors import HOST_NQN, NQN, Doors
from node import Kernel

sys.path.append(str(Path(__file__).parents[1] / "vm"))
import image as vm

Unavailable = vm.Unavailable

KERNEL = "linux-image-amd64"
# Parts of the kernel's modules that the lane needs.
MODULES = (
    "arch",
    "block",
    "crypto",
    "drivers/block",
    "drivers/net",
    "drivers/nvme",
    "fs",
    "lib",
    "net",
)
COMMAND_LINE = "console=ttyS0 panic=-1 quiet nokaslr mitigations=off random.trust_cpu=on "
COMMAND_LINE += "tsc=reliable clocksource=tsc no_timer_check"
# First process behind the initramfs: its commands come by the second serial port.
MAIN = """#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec 0<>/dev/ttyS1 1>&0 2>&1
stty raw -echo
mount -t tmpfs tmpfs /run
modprobe nvme-tcp
nvme connect -t tcp -a 10.0.2.2 -s {port} -n {nqn} --hostnqn {host}
until [ -b /dev/nvme0n1 ]; do usleep 100000; done
exec bash /csd-node
"""


class Machine(Kernel):
    """A machine whose second network device is in a namespace of this machine."""

    disk = "/dev/nvme0n1"

    def __init__(self, made: Path, tap: str, doors: Doors, log: Path, factor: float) -> None:
        super().__init__("host", log, factor)
        folder = log.parent
        main = MAIN.format(port=doors.port, nqn=NQN, host=HOST_NQN).encode()
        files = vm.folder("vm") | {"vm/main.sh": (0o100755, main)}
        base = (made / "initramfs").read_bytes()
        (folder / "initramfs").write_bytes(base + bytes(-len(base) % 512) + vm.cpio(files))
        words = " ".join((COMMAND_LINE, "node=0 device=eth1", *self.patience))
        command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max,la57=off"]
        command += ["-M", "q35,hpet=off", "-smp", "2", "-m", "768", "-nodefaults", "-no-reboot"]
        command += ["-display", "none", "-kernel", str(made / "vmlinux")]
        command += ["-initrd", str(folder / "initramfs"), "-append", words]
        command += ["-drive", f"file={made / 'root.img'},if=virtio,format=raw,snapshot=on"]
        command += ["-netdev", "user,id=net0", "-device", "virtio-net-pci,netdev=net0"]
        command += ["-netdev", f"tap,id=net1,ifname={tap},script=no,downscript=no"]
        command += ["-device", "virtio-net-pci,netdev=net1", "-device", "virtio-rng-pci"]
        command += ["-serial", f"file:{folder / 'console.log'}"]
        command += ["-chardev", "stdio,id=lines,signal=off", "-serial", "chardev:lines"]
        self.start(command)
        doors.take(tap)


def prepare(build: Path, root: Path) -> Path:
    """Make, or find, the machine's kernel and root disk."""
    made = build / KERNEL
    stamp = made / "stamp"
    own = [root / name for name in ("csd-node", "csd-mpi/dft.c", "csd-mpi/objects.py")]
    sources = (Path(f"{root}.stamp"), *own, Path(__file__))
    recipe = "".join(source.read_text() for source in sources)
    if stamp.is_file() and stamp.read_text() == recipe:
        return made
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    packages = vm.unpacked(build, made, KERNEL)
    (version,) = (entry.name for entry in (packages / "lib/modules").iterdir())
    boot = (packages / f"boot/vmlinuz-{version}").read_bytes()
    (made / "vmlinux").write_bytes(vm.uncompressed(boot))
    early = (Path(vm.__file__).parent / "guest" / "early.sh").read_bytes()
    busybox = (packages / "bin/busybox").read_bytes()
    modules = packages / "lib/modules"
    (made / "initramfs").write_bytes(vm.initramfs(early, busybox, modules))
    for part in (modules / version / "kernel").rglob("*.ko"):
        name = str(part.relative_to(modules / version / "kernel"))
        if not name.startswith(MODULES):
            part.unlink()
    copy = made / "root"
    subprocess.run(["cp", "-a", str(root), str(copy)], check=True)
    shutil.rmtree(copy / "usr/lib/uml", ignore_errors=True)
    vm.root_image(copy, modules, version, made / "root.img")
    shutil.rmtree(packages)
    shutil.rmtree(copy)
    stamp.write_text(recipe)
    return made
