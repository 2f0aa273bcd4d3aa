"""Turns the segmentation offload of a network device on or off, as ethtool does it.

offload.py DEVICE on|off, in the network namespace of the device
"""

import array
import fcntl
import socket
import struct
import sys

SIOCETHTOOL = 0x8946
# Commands of linux/ethtool.h that set segmentation by devices (TCP) and by software, and receiving.
COMMANDS = {"tso": 0x1F, "gso": 0x24, "gro": 0x2C}


def main() -> None:
    """Set all three."""
    device, wanted = sys.argv[1], {"on": 1, "off": 0}[sys.argv[2]]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in COMMANDS.values():
            value = array.array("B", struct.pack("II", command, wanted))
            request = struct.pack("16sP", device.encode(), value.buffer_info()[0])
            fcntl.ioctl(any_socket, SIOCETHTOOL, request)


if __name__ == "__main__":
    main()
