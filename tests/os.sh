#!/usr/bin/env bash
# The tests of drives' operating systems on a short image that mmdebstrap makes; without it on this
# machine's own root. What is missing is said, and skips the lane.
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in runc losetup mke2fs; do
    command -v "$tool" >/dev/null || { echo "SKIPPED os: no $tool"; exit 0; }
done
[ "$(id -u)" = 0 ] || { echo "SKIPPED os: needs root"; exit 0; }
[ -e /dev/fuse ] || { echo "SKIPPED os: no /dev/fuse"; exit 0; }
if packaging/os/make.sh build/os/short short; then
    export CSD_OS_ROOT=$PWD/build/os/short
else
    echo "SKIPPED os image: none could be made; the tests take this machine's root"
fi
cargo test --locked --workspace --test e2e -- --nocapture os:: os_limits:: os_faults:: os_network::
