#!/usr/bin/env bash
# The tests of drives' operating systems on an image that mmdebstrap makes: `tests/os.sh short` or
# `tests/os.sh full`. Without it they take this machine's own root. What is missing is said, and
# skips the lane.
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in runc losetup mke2fs; do
    command -v "$tool" >/dev/null || { echo "SKIPPED os: no $tool"; exit 0; }
done
[ "$(id -u)" = 0 ] || { echo "SKIPPED os: needs root"; exit 0; }
[ -e /dev/fuse ] || { echo "SKIPPED os: no /dev/fuse"; exit 0; }
form=${1:-short}
case $form in full) image=build/os/root ;; *) image=build/os/$form ;; esac
if packaging/os/make.sh "$image" "$form"; then
    export CSD_OS_ROOT=$PWD/$image
else
    echo "SKIPPED os image: none could be made; the tests take this machine's root"
fi
cargo test --locked --workspace --test e2e -- --nocapture \
    os:: os_limits:: os_faults:: os_missing:: os_network:: os_answers:: \
    os_shared:: os_cluster::
