#!/bin/sh
# Installs Cairn @VERSION@: one executable, into ~/.local/bin or $CAIRN_INSTALL_DIR. No root, no service, nothing else is changed.
# The SHA-256 of every archive stands below: what was changed on its way is not installed.
set -eu

version=@VERSION@
url=${CAIRN_RELEASE_URL:-@URL@}

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

target() {
  case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) fail "There is no Cairn for $(uname -s). On Windows, use WSL 2." ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) cpu=x64 ;;
    aarch64 | arm64) cpu=arm64 ;;
    *) fail "There is no Cairn for $(uname -m)." ;;
  esac
  # A shell that Rosetta translates says x86_64.
  if [ "$os-$cpu" = darwin-x64 ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || echo 0)" = 1 ]; then cpu=arm64; fi
  libc=
  if [ "$os" = linux ] && ls /lib/ld-musl-* >/dev/null 2>&1 && ! ls /lib*/ld-linux* /lib/*/ld-linux* >/dev/null 2>&1; then libc=-musl; fi
  echo "$os-$cpu$libc"
}

sha256_of_release() {
  case $1 in
@HASHES@
    *) fail "There is no Cairn $version for $1." ;;
  esac
}

sha256() {
  if command -v sha256sum >/dev/null; then
    sha256sum "$1"
  elif command -v shasum >/dev/null; then
    shasum -a 256 "$1"
  elif command -v openssl >/dev/null; then
    openssl dgst -sha256 -r "$1"
  else
    fail "What is downloaded cannot be checked: there is none of sha256sum, shasum and openssl."
  fi | cut -d ' ' -f 1
}

download() {
  if command -v curl >/dev/null; then
    curl -fsSL --retry 3 -o "$2" "$1"
  elif command -v wget >/dev/null; then
    wget -q -O "$2" "$1"
  else
    fail "There is neither curl nor wget to download with."
  fi
}

main() {
  target=$(target)
  wanted=$(sha256_of_release "$target")
  directory=${CAIRN_INSTALL_DIR:-${HOME:?}/.local/bin}
  archive=cairn-$version-$target
  [ ! -d "$directory/cairn" ] || fail "$directory/cairn is a directory. Name another directory than $directory in CAIRN_INSTALL_DIR."
  mkdir -p "$directory" || fail "Nothing can be installed into $directory. Name another directory in CAIRN_INSTALL_DIR."
  # In the directory itself, so that the last step is a rename.
  scratch=$(mktemp -d "$directory/.cairn-install.XXXXXX") || fail "$directory cannot be written to. Name another directory in CAIRN_INSTALL_DIR."
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 1' HUP INT TERM
  echo "Downloading Cairn $version for $target ..."
  download "$url/$archive.tar.gz" "$scratch/archive" || fail "The download failed: $url/$archive.tar.gz"
  found=$(sha256 "$scratch/archive")
  [ "$found" = "$wanted" ] ||
    fail "What was downloaded is not Cairn $version: its SHA-256 is ${found:-unknown}, not $wanted. Nothing was installed."
  tar -xzf "$scratch/archive" -C "$scratch"
  if ! said=$(CAIRN_NATIVE_DIR="$scratch/native" "$scratch/$archive/cairn" version --native 2>&1); then
    case $target in
      *-musl) fail "It does not start here: $said" "Nothing was installed. It needs libstdc++ (on Alpine: apk add libstdc++)." ;;
      *) fail "It does not start here: $said" "Nothing was installed." ;;
    esac
  fi
  # In one step: a server that runs keeps the file that was there.
  mv -f "$scratch/$archive/cairn" "$directory/cairn"
  echo "Installed $(printf '%s\n' "$said" | head -n 1) as $directory/cairn"
  case :$PATH: in
    *:"$directory":*) echo "Start it: cairn serve" ;;
    *) echo "Start it: $directory/cairn serve" ;;
  esac
}

# Only when all of this file has arrived.
main
