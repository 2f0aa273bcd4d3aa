# Shared by the recipes: the array, its drives, and messages. Source it after `set -euo pipefail`.
# The array is that of `csd` in this folder, or of $CSD_ARRAY; $CSD names another `csd`.
csd=${CSD:-csd}

fail() { # fail CODE MESSAGE
    echo "error: $2" >&2
    exit "$1"
}

need() { # need PROGRAM PACKAGE
    command -v "$1" >/dev/null || fail 2 "no $1 (apt-get install $2)"
}

# Reads names, processors, addresses and memory (bytes) of the drives into `drives`, `processors`,
# `addresses` and `memories`, and the array's folder into `folder`.
read_array() {
    need python3 python3
    command -v "$csd" >/dev/null || fail 2 "no $csd: name it with \$CSD"
    local array=${CSD_ARRAY:-csd-array.toml} status
    [ -f "$array" ] || fail 2 "no array file $array: \`csd array up --os FOLDER --os-key FILE\`"
    find_folder
    # Exit code 4: something is wrong with one of them, which it says by itself.
    status=$("$csd" --array "$array" os status --json) || [ $? = 4 ] || fail 1 "no state of the drives"
    drives=() processors=() addresses=() memories=()
    local name count address memory
    while read -r name count address memory; do
        drives+=("$name") processors+=("$count") addresses+=("$address") memories+=("$memory")
    done < <(python3 -c '
import json, math, sys
for one in json.load(sys.stdin)["result"]["drives"]:
    address = (one.get("tunnel") or {}).get("address")
    if one["state"] == "up" and address:
        print(one["name"], one.get("processors") or math.ceil(one["cpus"]), address, one["memory_limit_bytes"])' <<<"$status")
    [ ${#drives[@]} -gt 0 ] || fail 2 "no operating system of a drive runs with OpenSSH (--os-key)"
    ssh_config=$folder/ssh_config
}

# Sets `folder` to the array's folder.
find_folder() {
    local array=${CSD_ARRAY:-csd-array.toml}
    folder=$(cd "$(dirname "$array")" && pwd)/$(basename "$array" .toml)
}

# Prints the address of this machine (`host`) or of a drive in the tunnels' network.
address_of() { # address_of NAME
    awk -v name="$1" '$2 == name { print $1; exit }' "$folder/hosts"
}

# Returns true if the process of a daemon of Hadoop on this machine runs.
head_runs() { # head_runs NAME
    local pid
    pid=$(cat "$folder/hadoop/$1.pid" 2>/dev/null) || return 1
    { tr "\\0" " " <"/proc/$pid/cmdline"; } 2>/dev/null | grep -q -- "-Dcsd.daemon=$folder/$1 "
}

# Runs a command in a drive, by OpenSSH.
in_drive() {
    local drive=$1
    shift
    ssh -F "$ssh_config" -o BatchMode=yes -o ConnectTimeout=10 "$drive" "$@"
}

# Returns true if a drive's OpenSSH answers.
answers() { # answers ADDRESS
    [ "$(timeout 4 bash -c 'exec 3<>"/dev/tcp/$1/22" && head -c 4 <&3' sh "$1" 2>/dev/null)" = SSH- ]
}
