#!/bin/bash
# Runs every check in turn and reports on the second serial port: @BEGIN, @LOG, @END, @ASK, @DONE.
# `main.sh --one FUNCTION` is one check, in a process of its own so that its time can be limited.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
. /vm/settings.sh
. /vm/lib.sh

# What to run, in order: name of the function and its limit in seconds, before stretching.
CHECKS=()
check() { CHECKS+=("$1 $2"); }
# The same for checks that only the long form has time for.
check_long() { if [ "$FORM" = long ]; then check "$@"; fi; }

for file in /vm/checks_*.sh; do . "$file"; done

if [ "$1" = --one ]; then
    set -eE
    trap 'echo "line $LINENO of ${FUNCNAME[0]:-?}: $BASH_COMMAND: status $?"' ERR
    trap 'disconnect_all; ublk_end' EXIT
    "$2"
    exit 0
fi

report() { printf '%s\n' "$*" >&3; }

# Ends one check: its log is reported when it failed, and the kernel's own complaints count.
settle() {
    local name=$1 status=$2 complaints reason
    dmesg --read-clear --level emerg,alert,crit,err,warn > "$STATE/kernel"
    complaints=$(unexpected < "$STATE/kernel")
    case $status in
    0) ;;
    77) report "@END $name skip $(tail -n 1 "$STATE/log")"; return ;;
    124 | 137) reason="not done after $3 s" ;;
    *) reason="status $status" ;;
    esac
    if [ -z "$reason" ] && [ -n "$complaints" ]; then
        reason="the kernel complained"
    fi
    if [ -z "$reason" ]; then
        report "@END $name pass"
        return
    fi
    tail -n 40 "$STATE/log" | cut -c 1-300 | while IFS= read -r line; do report "@LOG $line"; done
    tail -n 20 "$STATE/kernel" | while IFS= read -r line; do report "@LOG kernel: $line"; done
    report "@END $name fail $reason"
}

main() {
    # Held open by all: a serial port that nobody holds open loses what arrives.
    exec 3<> /dev/ttyS1
    stty -F /dev/ttyS1 raw -echo
    mkdir -p "$STATE" /tmp/mnt
    # What udev would make: bash's process substitution needs it.
    ln -sfn /proc/self/fd /dev/fd
    modprobe nvme-tcp
    dmesg --clear
    local entry name limit status
    for entry in "${CHECKS[@]}"; do
        read -r name limit <<< "$entry"
        # shellcheck disable=SC2053
        if [ -n "$ONLY" ] && [[ $name != $ONLY ]]; then continue; fi
        if [ "$SECONDS_MAX" -gt 0 ] && [ $SECONDS -ge "$SECONDS_MAX" ]; then
            report "@BEGIN $name 1"
            report "@END $name skip the lane's time ($SECONDS_MAX s) is over"
            continue
        fi
        limit=$(stretched "$limit")
        : > "$STATE/expected"
        report "@BEGIN $name $limit"
        timeout --kill-after=5 "$limit" /bin/bash /vm/main.sh --one "$name" \
            > "$STATE/log" 2>&1 < /dev/null
        status=$?
        settle "$name" "$status" "$limit"
    done
    report "@DONE"
    sync
    echo 1 > /proc/sys/kernel/sysrq
    echo o > /proc/sysrq-trigger
    sleep 60
}

main
