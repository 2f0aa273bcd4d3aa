#!/usr/bin/env bash
# Runs in a clean Debian with /csd.deb, and the static program as /empty/csd if there is one.
set -uo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
passed=0 failed=0 skipped=0

check() { # NAME COMMAND...: a command that must end well
    local name=$1
    shift
    if "$@" >/log 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $name"
        cat /log
    fi
}

until_there() { # FILE: waits for it, at most a minute
    for _ in $(seq 600); do [ -e "$1" ] && return; sleep 0.1; done
    return 1
}

unit=/usr/lib/systemd/system/csd-drive@.service

serve() { # The unit's command as its user, with the example's options on any port and small media
    mkdir -p /var/lib/csd && chown csd:csd /var/lib/csd
    local line
    line=$(sed -n 's/^ExecStart=//p' "$unit")
    CSD_MEDIA=/var/lib/csd/d0.media
    CSD_OPTIONS=$(sed -n 's/^CSD_OPTIONS=//p' /etc/csd/example.env)
    CSD_OPTIONS=${CSD_OPTIONS/64G/256M}
    CSD_OPTIONS="${CSD_OPTIONS/:4420/:0} --ready-file /var/lib/csd/d0.url"
    (eval "exec setpriv --reuid=csd --regid=csd --init-groups $line") &
    drive=$!
    until_there /var/lib/csd/d0.url
}

store() { # put, list, count and get, on the drive that serves
    cd /tmp || return
    printf 'schema = 1\nname = "a"\nuuid = "5f0c1d2e3a4b5c6d7e8f901122334455"\n' >a.toml
    printf '[[drives]]\nname = "d0"\nurl = "%s"\n' "$(cat /var/lib/csd/d0.url)" >>a.toml
    export CSD_ARRAY=/tmp/a.toml
    csd put /usr/bin/csd program && csd ls | grep -q '^program ' \
        && csd get program /tmp/back && cmp /tmp/back /usr/bin/csd \
        && seq 1000 | csd put - numbers --csv --type i32 \
        && csd run count numbers --equal 7 --on all --check --json | grep -q '"count": \?1\b' \
        && csd program run /usr/share/csd/examples/rust-histogram.wasm --object numbers --on host
}

stops() { kill "$drive" && wait "$drive"; }

static() { # FOLDER: the same in an array of its own, where there is nothing but the program
    in_it() { chroot "$1" /csd --array /tmp/a.toml "${@:2}"; }
    mount -t proc proc "$1/proc"
    in_it "$1" array up --drives 2 --size 128M && seq 1000 >/numbers \
        && in_it "$1" put - numbers --csv --type i32 </numbers \
        && in_it "$1" run count numbers --equal 7 --on all --check \
        && in_it "$1" put - text </numbers && in_it "$1" get text - | cmp - /numbers \
        && in_it "$1" array down --delete --yes
    local code=$?
    umount "$1/proc"
    return $code
}

mount -t proc proc /proc
check "the package installs with what it depends on" \
    sh -c 'apt-get update -q && apt-get install -y -q --no-install-recommends /csd.deb'
check "the user is there" sh -c 'getent passwd csd | grep -q /var/lib/csd'
check "csd says its version and features" sh -c 'csd --version | grep "features: wasm"'
check "man pages are installed" sh -c 'zgrep -q "SYNOPSIS" /usr/share/man/man1/csd-drive-serve.1.gz'
check "completions are installed" sh -c 'bash -n /usr/share/bash-completion/completions/csd \
    && test -s /usr/share/zsh/vendor-completions/_csd \
    && test -s /usr/share/fish/vendor_completions.d/csd.fish'
check "licence and guide are installed" sh -c 'test -s /usr/share/doc/csd/copyright \
    && ls /usr/share/doc/csd/LICENSE-* && ls /usr/share/doc/csd/docs/guide/arrays.md*'
check "programs have their header" grep -q CSD_PROGRAM /usr/share/csd/csd.h
check "the unit's command serves as its user" serve
check "put, get and count on that drive" store
check "it stops when asked" stops
check "its medium is whole" csd drive check /var/lib/csd/d0.media
check "the package goes, and leaves the medium" \
    sh -c 'apt-get purge -y -q csd && test -s /var/lib/csd/d0.media && ! command -v csd'
if [ -x /empty/csd ]; then
    check "the static program needs nothing else" static /empty
else
    echo "SKIPPED the static program: none was built"
    skipped=1
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
