#!/usr/bin/env bash
# Helix and Emacs for the tests, from Debian's package mirror, in a folder of their own.
#
#     install_others.sh [FOLDER]        FOLDER: $GPA_LSP_EDITORS, or ~/.cache/gpa-lsp-editors
#
# Leaves the programs FOLDER/hx and FOLDER/emacs, and does nothing when they are there and start. About 110 MB are downloaded.
# Exit status: 0 done; 3 the package mirror cannot be reached or does not have them; 1 anything else.
set -euo pipefail
script=install_others.sh
folder=$(realpath -m "${1:-${GPA_LSP_EDITORS:-$HOME/.cache/gpa-lsp-editors}}")
# shellcheck source=tests/editors/debian_packages.sh
. "$(dirname "$0")/debian_packages.sh"

install_helix() {
  local root=$folder/root-hx
  if starts hx; then return; fi
  unpack trixie "$root" hx
  make_program hx "$root" usr/bin/hx "export HELIX_RUNTIME=\"$root/usr/lib/hx/runtime\""
}

# Emacs looks for its Lisp where Debian puts it, unless it is told. Its image cannot be told, so it starts from Lisp, in two seconds.
install_emacs() {
  local root=$folder/root-emacs lisp
  if starts emacs; then return; fi
  unpack trixie "$root" "emacs-nox elpa-lsp-mode"
  lisp=$(find "$root/usr/share/emacs" -maxdepth 1 -name '[0-9]*' | head -n 1)
  make_program emacs "$root" usr/bin/emacs-nox "export EMACSDATA=\"$lisp/etc\" EMACSDOC=\"$lisp/etc\" EMACSLOADPATH=\"$lisp/lisp:\""
}

install_helix
install_emacs
