#!/bin/busybox sh
# First process of the machine: from the initramfs to the root disk, with the network up.
# The checks lie in /vm, packed anew at every start.
PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in /modules/*.ko; do insmod "$module"; done
tries=0
until [ -b /dev/vda ]; do
    tries=$((tries + 1))
    [ $tries -gt 300 ] && echo "no root disk" && break
    usleep 100000
done
ip link set lo up
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
mount -t ext4 /dev/vda /root
mkdir -p /root/vm
mount -t tmpfs tmpfs /root/vm
cp -r /vm/. /root/vm/
mount -t tmpfs tmpfs /root/tmp
for from in proc sys dev; do mount --move /$from /root/$from; done
exec switch_root /root /bin/bash /vm/main.sh
