#!/bin/bash
# First process of both kernels of the lane (see README.md): sets up the network and the cluster,
# then runs the lines that it reads, and says how each ends. Kernel parameters: node (0 is the host,
# 1 the drive), beat (heartbeats after which a node is dead, 2 s apart), idle_ms (silence after which
# a connection is), device (of the network).
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
stty -echo -onlcr
# Only a kernel that ends itself speaks amid answers; the rest is in its own log.
dmesg -n 1
mount -t proc proc /proc
for word in $(cat /proc/cmdline); do
    case $word in node=* | beat=* | idle_ms=* | device=*) declare "${word%%=*}=${word#*=}" ;; esac
done
names=(host drive)
mount -t sysfs sysfs /sys
mountpoint -q /dev || mount -t devtmpfs dev /dev
# Programs of MPI share memory there.
mkdir -p /dev/shm
for folder in /run /tmp /mnt /etc/ocfs2 /dev/shm; do mount -t tmpfs tmpfs "$folder"; done
hostname "${names[node]}"
ip link set lo up
ip address add "10.77.0.$((node + 1))/24" dev "$device"
ip link set "$device" up
{
    printf 'cluster:\n\tnode_count = 2\n\tname = csd\n\n'
    for number in 0 1; do
        printf 'node:\n\tip_port = 7777\n\tip_address = 10.77.0.%s\n' $((number + 1))
        printf '\tnumber = %s\n\tname = %s\n\tcluster = csd\n\n' "$number" "${names[number]}"
    done
} >/etc/ocfs2/cluster.conf
for module in configfs ocfs2_stackglue ocfs2_nodemanager ocfs2_dlm ocfs2_stack_o2cb ocfs2; do
    modprobe "$module" || echo "no module $module"
done
mount -t configfs configfs /sys/kernel/config
echo o2cb >/sys/fs/ocfs2/cluster_stack
o2cb register-cluster csd
cluster=/sys/kernel/config/cluster/csd
echo "$beat" >$cluster/heartbeat/dead_threshold
echo "$idle_ms" >$cluster/idle_timeout_ms
echo $((idle_ms / 2)) >$cluster/keepalive_delay_ms
mkdir /mnt/shared
cd /mnt || exit
echo "@READY"
while read -r number line; do
    (eval "$line") </dev/null 2>&1
    echo "@END $number $?"
done
busybox poweroff -f
