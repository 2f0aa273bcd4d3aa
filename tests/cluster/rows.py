"""Sum of the CRC-32 of all rows of TeraSort on standard input, as teravalidate prints it."""

import sys
import zlib

ROW_BYTES = 100


def main() -> None:
    data = sys.stdin.buffer.read()
    if len(data) % ROW_BYTES:
        sys.exit(f"{len(data)} bytes are no whole rows")
    rows = (data[at : at + ROW_BYTES] for at in range(0, len(data), ROW_BYTES))
    print(f"{sum(map(zlib.crc32, rows)):x}")


if __name__ == "__main__":
    main()
