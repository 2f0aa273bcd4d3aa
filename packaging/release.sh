#!/bin/sh
# Builds the packages into build/release: the Debian package, and an archive with a static program.
# Needs cargo-deb, which it installs; for the archive also rustup's musl target and musl-gcc.
set -eu
cd "$(dirname "$0")/.."
out=build/release
rm -rf "$out"
mkdir -p "$out/completions"

cargo build --release --locked -p csd
csd=${CARGO_TARGET_DIR:-target}/release/csd
"$csd" completions bash >"$out/completions/csd"
"$csd" completions zsh >"$out/completions/_csd"
"$csd" completions fish >"$out/completions/csd.fish"
"$csd" man "$out/man"

command -v cargo-deb >/dev/null || cargo install --locked cargo-deb
cargo deb --no-build --strip --locked -p csd --output "$out/"

triple=x86_64-unknown-linux-musl
if command -v rustup >/dev/null; then rustup target add "$triple" || true; fi
if command -v musl-gcc >/dev/null && [ -d "$(rustc --print sysroot)/lib/rustlib/$triple" ]; then
    cargo build --release --locked -p csd --target "$triple"
    version=$("$csd" --version | cut -d ' ' -f 2)
    name=csd-$version-x86_64-linux-static
    mkdir -p "$out/$name"
    strip -o "$out/$name/csd" "${CARGO_TARGET_DIR:-target}/$triple/release/csd"
    mkdir -p "$out/$name/examples"
    cp sdk/built/*.wasm "$out/$name/examples"
    cp sdk/c/csd.h "$out/$name"
    cp -r "$out/completions" "$out/man" LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md \
        SECURITY.md docs packaging/csd-drive@.service packaging/example.env "$out/$name"
    tar -C "$out" --owner 0 --group 0 --sort name -czf "$out/$name.tar.gz" "$name"
    rm -r "${out:?}/$name"
else
    echo "no static program: it needs musl-gcc (apt-get install musl-tools) and $triple"
fi
(cd "$out" && sha256sum ./*.deb ./*.tar.gz 2>/dev/null >SHA256SUMS)
ls -l "$out"
