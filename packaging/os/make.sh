#!/usr/bin/env bash
# Makes the image of the operating system of drives: a root folder of Debian.
# Usage: packaging/os/make.sh FOLDER [full|short]
# full has what Hadoop, Spark and MPI run on; short has OpenSSH, Python and busybox. An image that
# is there already and has the same packages is kept. Needs root, mmdebstrap and a mirror.
set -euo pipefail
folder=${1:?name the folder of the image} form=${2:-full}
suite=${SUITE:-bookworm}
packages=openssh-server,python3,busybox-static,procps,iproute2
case $form in
full) packages+=,openjdk-17-jre-headless,openmpi-bin,libopenmpi-dev,libfftw3-double3,libfftw3-single3,libfftw3-mpi3,gcc,libc6-dev,iperf3,rsync ;;
short) ;;
*) echo "$form: say full or short" >&2; exit 2 ;;
esac
stamp="$suite $packages"
if [ "$(cat "$folder.stamp" 2>/dev/null)" = "$stamp" ] && [ -e "$folder/bin/sh" ]; then
    echo "$folder is there"
    exit 0
fi
[ "$(id -u)" = 0 ] || { echo "an image takes root: its files have several owners" >&2; exit 2; }
command -v mmdebstrap >/dev/null || { echo "no mmdebstrap (apt-get install mmdebstrap)" >&2; exit 2; }
mkdir -p "$(dirname "$folder")"
rm -rf --one-file-system "$folder" "$folder.new" "$folder.stamp"
# Keys of a host are made when a drive first starts, each its own; documentation is left out.
mmdebstrap --quiet --variant=minbase --include="$packages" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='rm -f "$1"/etc/ssh/ssh_host_* "$1"/etc/resolv.conf "$1"/etc/hostname' \
    --customize-hook='rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/*; mkdir -p "$1"/data' \
    "$suite" "$folder.new"
chmod 755 "$folder.new"
mv "$folder.new" "$folder"
printf '%s' "$stamp" >"$folder.stamp"
du -sh "$folder"
