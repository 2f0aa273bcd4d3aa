#!/usr/bin/env bash
# Installs the Debian package into a clean Debian and uses it there; runs the static program in a
# folder that holds nothing else. Needs root, mmdebstrap and a mirror. The last line is
# `N passed, N failed, N skipped`.
set -euo pipefail
cd "$(dirname "$0")/../.."
release=${1:-build/release}
suite=${SUITE:-bookworm}
for tool in mmdebstrap unshare chroot; do
    command -v "$tool" >/dev/null || { echo "SKIPPED release: no $tool"; tool=; break; }
done
[ "$(id -u)" = 0 ] || { echo "SKIPPED release: needs root"; tool=; }
[ -n "$tool" ] || { echo "0 passed, 0 failed, 1 skipped"; exit 0; }

root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
deb=$(ls "$release"/csd_*.deb)
mmdebstrap --quiet --variant=minbase "$suite" "$root"
chmod 755 "$root"
cp "$deb" "$root/csd.deb"
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp tests/release/inside.sh "$root/inside.sh"
mkdir -p "$root/empty/proc" "$root/empty/tmp" "$root/empty/dev"
mknod -m 666 "$root/empty/dev/null" c 1 3
if archive=$(ls "$release"/csd-*-static.tar.gz 2>/dev/null); then
    tar -xzf "$archive" -C "$root/empty" --strip-components 1 --wildcards '*/csd'
fi
# Whatever runs inside ends with it.
unshare --mount --pid --fork --kill-child chroot "$root" bash /inside.sh
