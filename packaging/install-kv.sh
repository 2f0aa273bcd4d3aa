#!/bin/sh
# Installs libcsd_kv: install-kv.sh BUILT PREFIX [DESTDIR]. BUILT is the folder that cargo built the
# libraries in, such as target/release.
set -eu
[ $# -ge 2 ] || { echo "usage: install-kv.sh BUILT PREFIX [DESTDIR]" >&2; exit 2; }
built=$1 prefix=$2 to=${3:-}$2
source=$(cd "$(dirname "$0")/.." && pwd)/clients/c
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$source/../../Cargo.toml" | head -n 1)
mkdir -p "$to/include" "$to/lib/pkgconfig"
install -m 644 "$source/include/csd_kv.h" "$to/include/"
install -m 755 "$built/libcsd_kv.so" "$to/lib/libcsd_kv.so.0"
ln -sf libcsd_kv.so.0 "$to/lib/libcsd_kv.so"
install -m 644 "$built/libcsd_kv.a" "$to/lib/"
sed "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" "$source/csd_kv.pc.in" \
    > "$to/lib/pkgconfig/csd_kv.pc"
