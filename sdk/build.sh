#!/usr/bin/env bash
# Builds the examples of the SDK into sdk/built: those in Rust with the target
# wasm32-unknown-unknown (rustup target add wasm32-unknown-unknown), those in C with clang and
# wasm-ld (clang and lld of a distribution). What has no tools is said, and left as it is.
set -eu -o pipefail
cd "$(dirname "$0")"
out="$PWD/${1:-built}"
mkdir -p "$out"
if rustc --print target-libdir --target wasm32-unknown-unknown 2> /dev/null | xargs -r test -d; then
    (cd rust && cargo build --quiet --release --examples)
    for wasm in "${CARGO_TARGET_DIR:-rust/target}"/wasm32-unknown-unknown/release/examples/*.wasm; do
        case "$(basename "$wasm")" in *-*) continue ;; esac
        cp "$wasm" "$out/rust-$(basename "$wasm")"
    done
else
    echo "SKIPPED: Rust examples: rustup target add wasm32-unknown-unknown"
fi
if command -v clang > /dev/null && command -v wasm-ld > /dev/null; then
    for source in c/examples/*.c; do
        clang --target=wasm32 -O3 -msimd128 -nostdlib -ffreestanding -Wall -Werror \
            -Wl,--no-entry -Wl,-z,stack-size=65536 -Wl,--strip-all \
            -o "$out/c-$(basename "$source" .c).wasm" "$source"
    done
else
    echo "SKIPPED: C examples: they want clang and wasm-ld (package lld)"
fi
