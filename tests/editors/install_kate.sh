#!/usr/bin/env bash
# Kate for the tests, from Debian's package mirror, in a folder of its own.
#
#     install_kate.sh [FOLDER]          FOLDER: $GPA_LSP_EDITORS, or ~/.cache/gpa-lsp-editors
#
# Leaves the program FOLDER/kate, and does nothing when it is there and starts. About 230 MB are downloaded, and 400 MB stay.
# Exit status: 0 done; 3 the package mirror cannot be reached or does not have it; 1 anything else.
set -euo pipefail
script=install_kate.sh
folder=$(realpath -m "${1:-${GPA_LSP_EDITORS:-$HOME/.cache/gpa-lsp-editors}}")
# shellcheck source=tests/editors/debian_packages.sh
. "$(dirname "$0")/debian_packages.sh"

export QT_QPA_PLATFORM=offscreen
if starts kate; then exit 0; fi
root=$folder/root-kate
unpack trixie "$root" kate
libraries=$(find "$root/usr/lib" -maxdepth 1 -name '*-linux-gnu*' | head -n 1)
# What only a screen with a graphics card, or a reader, needs.
rm -rf "$libraries"/libLLVM* "$libraries"/libgallium* "$libraries"/libz3* "$root"/usr/share/{doc,locale,man,icons}
find "$libraries" -mindepth 2 -maxdepth 2 -name '*.so*' \( -path '*/libproxy/*' -o -path '*/pulseaudio/*' \) -exec ln -sf {} "$libraries" \;
make_program kate "$root" usr/bin/kate \
  "export QT_PLUGIN_PATH=\"$libraries/qt6/plugins\" QML2_IMPORT_PATH=\"$libraries/qt6/qml\" XDG_DATA_DIRS=\"$root/usr/share\""
