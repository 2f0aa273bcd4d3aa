#!/usr/bin/env bash
# Makes the image of the operating system of drives: a root folder of Debian.
# Usage: packaging/os/make.sh FOLDER [full|short|shared]
# full has what Hadoop, Spark and MPI run on; short has OpenSSH, Python and busybox; shared has a
# kernel that runs as a process (user-mode-linux), the tools of OCFS2 and those of `csd os`, Open MPI,
# FFTW with its compiler, and NumPy. An image that is there already and has the same packages is kept.
# Needs root, mmdebstrap and a mirror.
set -euo pipefail
folder=${1:?name the folder of the image} form=${2:-full}
suite=${SUITE:-bookworm}
packages=openssh-server,python3,busybox-static,procps,iproute2
case $form in
full) packages+=,openjdk-17-jre-headless,openmpi-bin,libopenmpi-dev,libfftw3-double3,libfftw3-single3,libfftw3-mpi3,gcc,libc6-dev,iperf3,rsync ;;
short) ;;
shared)
    packages=busybox-static,e2fsprogs,iproute2,kmod,nvme-cli,ocfs2-tools,runc,user-mode-linux
    packages+=,openmpi-bin,libopenmpi-dev,libfftw3-dev,gcc,libc6-dev,python3-numpy
    ;;
*) echo "$form: say full, short or shared" >&2; exit 2 ;;
esac
# user-mode-linux has its modules in a folder in which its kernel does not look. The tools of OCFS2
# look for mounts in /etc/mtab.
modules=true
if [ "$form" = shared ]; then
    modules='mkdir -p "$1/usr/lib/modules"
        for kernel in "$1"/usr/lib/uml/modules/*; do
            ln -s "../uml/modules/${kernel##*/}" "$1/usr/lib/modules/"
            chroot "$1" depmod "${kernel##*/}"
        done
        ln -sf ../proc/self/mounts "$1/etc/mtab"'
fi
stamp="$suite $packages"
if [ "$(cat "$folder.stamp" 2>/dev/null)" = "$stamp" ] && [ -e "$folder/bin/sh" ]; then
    echo "$folder is there"
    exit 0
fi
[ "$(id -u)" = 0 ] || { echo "an image takes root: its files have several owners" >&2; exit 2; }
command -v mmdebstrap >/dev/null || { echo "no mmdebstrap (apt-get install mmdebstrap)" >&2; exit 2; }
mkdir -p "$(dirname "$folder")"
rm -rf --one-file-system "$folder" "$folder.new" "$folder.stamp"
# Keys of a host are made when a drive first starts, each its own. Documentation is left out, but for
# the folder in which Java's packages make links.
log=$folder.log
mmdebstrap --variant=minbase --include="$packages" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --essential-hook='mkdir -p "$1/usr/share/man/man1"' \
    --customize-hook='rm -f "$1"/etc/ssh/ssh_host_* "$1"/etc/resolv.conf "$1"/etc/hostname' \
    --customize-hook="$modules" \
    --customize-hook='rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/*; mkdir -p "$1"/data' \
    "$suite" "$folder.new" >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; echo "no image: $log has all that was said" >&2; exit 1; }
chmod 755 "$folder.new"
mv "$folder.new" "$folder"
printf '%s' "$stamp" >"$folder.stamp"
du -sh "$folder"
