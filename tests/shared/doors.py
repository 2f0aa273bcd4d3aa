"""A drive, a file for each of its two sides, and the network that its tunnel makes of them."""

import subprocess
import time
from pathlib import Path

LIMIT_S = 60.0
HOST_NQN = "nqn.2026-11.io.csdstore:shared-host"
NQN = "nqn.2026-11.io.csdstore:shared"
SIDES = ("outside", "inside")


def call(*command: str) -> str:
    """Run a program, and return what it prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


class Doors:
    """Processes of ``csd`` and network namespaces; they end with :meth:`close`."""

    def __init__(self, csd: Path, folder: Path, factor: float, *, machine: bool) -> None:
        self._machine, self.port = machine, 0
        self._csd, self._folder, self._factor = csd, folder, factor
        self._processes: list[subprocess.Popen[bytes]] = []
        self._mounted: list[Path] = []
        self.namespaces = [f"{folder.name}-{side}" for side in SIDES]
        self._made: list[str] = []

    def open(self) -> None:
        """Start the drive, attach both sides, and join both namespaces by the tunnel."""
        socket, ready = self._folder / "inside.sock", self._folder / "ready"
        serve = ["drive", "serve", "--media", f"{self._folder}/media", "--size", "640M"]
        serve += ["--kv", "10%", "--nqn", NQN, "--listen", "127.0.0.1:0"]
        serve += ["--inside", str(socket), "--ready-file", str(ready), "--tunnel-host", HOST_NQN]
        if self._machine:
            # Heartbeats of both kernels lie in sectors; those of user-mode-linux have 512 bytes.
            serve += ["--block", "512"]
        self._start("drive", serve, ready)
        urls = [ready.read_text().strip(), f"nvme+unix://{socket}/{NQN}"]
        self.port = int(urls[0].rsplit("/", 1)[0].rsplit(":", 1)[1])
        sides = zip(SIDES, urls, self.namespaces, strict=True)
        for number, (side, url, namespace) in enumerate(sides):
            connect = ["--host-nqn", HOST_NQN]
            # A machine has an initiator of its own.
            attached = number == 1 or not self._machine
            if attached:
                mount = self._folder / side
                mount.mkdir()
                self._mounted.append(mount)
                attach = ["attach", url, str(mount), "--retry", "10m", *connect]
                self._start(f"attach-{side}", attach, self.block(number))
            call("ip", "netns", "add", namespace)
            self._made.append(namespace)
            up = ["tunnel", "up", "--drive", url, "--netns", namespace, "--device", "csd0"]
            log = self._folder / f"tunnel-{side}.log"
            self._start(f"tunnel-{side}", [*up, *connect], log, said=True)
            if attached:
                call("ip", "-n", namespace, "tuntap", "add", "tap0", "mode", "tap")
                self._route(namespace, number)

    def block(self, number: int) -> Path:
        """Return the file of the drive's blocks on a side."""
        return self._folder / SIDES[number] / "block"

    def _route(self, namespace: str, number: int) -> None:
        """Give the address of a side's device to the kernel that has the tap device."""
        own, far = f"10.77.0.{number + 1}", f"10.77.0.{2 - number}"
        inside = ("ip", "-n", namespace)
        call(*inside, "link", "set", "lo", "up")
        call(*inside, "address", "add", "169.254.77.1/32", "dev", "tap0")
        call(*inside, "link", "set", "tap0", "up")
        call(*inside, "address", "flush", "dev", "csd0")
        call(*inside, "route", "replace", f"{own}/32", "dev", "tap0")
        call(*inside, "route", "replace", f"{far}/32", "dev", "csd0")
        # The kernel asks for the far address on its wire: this side answers, and forwards.
        settings = "echo 1 >/proc/sys/net/ipv4/conf/tap0/proxy_arp; "
        settings += "echo 1 >/proc/sys/net/ipv4/conf/all/forwarding"
        call("nsenter", f"--net=/run/netns/{namespace}", "sh", "-c", settings)

    def take(self, tap: str) -> None:
        """Move the tap device that a machine makes to the outside."""
        end = time.monotonic() + LIMIT_S * self._factor
        while not Path(f"/sys/class/net/{tap}").exists():
            if time.monotonic() > end:
                raise RuntimeError("the machine makes no network device")
            time.sleep(0.02)
        namespace = self.namespaces[0]
        call("ip", "link", "set", tap, "netns", namespace, "name", "tap0")
        self._route(namespace, 0)

    def carried(self) -> int:
        """Return the bytes that the host has received through the tunnel."""
        show = ("ip", "netns", "exec", self.namespaces[0], "cat")
        return int(call(*show, "/sys/class/net/csd0/statistics/rx_bytes"))

    def _start(self, name: str, arguments: list[str], sign: Path, *, said: bool = False) -> None:
        """Start a command, and wait until a file is there, or has its first line."""
        log = self._folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(self._csd), *arguments], stdout=output, stderr=subprocess.STDOUT
            )
        self._processes.append(process)
        end = time.monotonic() + LIMIT_S * self._factor
        while not (sign.read_text() if said else sign.exists()):
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"csd {name}: {log.read_text().strip()}")
            time.sleep(0.02)

    def close(self) -> None:
        """End everything, the drive last."""
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for mount in self._mounted:
            subprocess.run(["umount", str(mount)], capture_output=True, check=False)
        for namespace in self._made:
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)
