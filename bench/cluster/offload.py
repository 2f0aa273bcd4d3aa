"""Turns the segmentation offload of a network device on or off, as ethtool does it.

offload.py DEVICE on|off, in the network namespace of the device
"""

import array
import fcntl
import socket
import struct
import sys

SIOCETHTOOL = 0x8946
# Commands of linux/ethtool.h that set and read segmentation by devices (TCP) and by software, and
# joining of received packets.
COMMANDS = {"tso": (0x1F, 0x1E), "gso": (0x24, 0x23), "gro": (0x2C, 0x2B)}


def main() -> None:
    """Set all three."""
    device, wanted = sys.argv[1], {"on": 1, "off": 0}[sys.argv[2]]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for name, (setting, reading) in COMMANDS.items():
            for command in (setting, reading):
                value = array.array("B", struct.pack("II", command, wanted))
                request = struct.pack("16sP", device.encode(), value.buffer_info()[0])
                fcntl.ioctl(any_socket, SIOCETHTOOL, request)
            _, found = struct.unpack("II", value)
            if bool(found) != bool(wanted):
                sys.exit(f"{device}: {name} stays {'on' if found else 'off'}")


if __name__ == "__main__":
    main()
