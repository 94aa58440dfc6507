#!/usr/bin/env bash
# Chromium without a screen, for the tests of Visual Studio Code, from Debian's packages, in a folder of its own: nothing of the system is changed.
#
#     install_chromium.sh [FOLDER]      FOLDER: $GPA_LSP_EDITORS, or ~/.cache/gpa-lsp-editors
#
# Leaves the program FOLDER/chromium, and does nothing when it is there and starts.
# Exit status: 0 done; 3 the package mirror cannot be reached or does not have it; 1 anything else.
set -euo pipefail
folder=$(realpath -m "${1:-${GPA_LSP_EDITORS:-$HOME/.cache/gpa-lsp-editors}}")
root=$folder/root-chromium
cache=$folder/apt-chromium

give_up() { echo "install_chromium.sh: $2" >&2; exit "$1"; }

if "$folder/chromium" --version >/dev/null 2>&1; then exit 0; fi
command -v apt-get >/dev/null || give_up 1 "this script needs Debian's apt-get"
rm -rf "$root" "$cache"
mkdir -p "$root" "$cache/archives/partial"

# What the system already has is not downloaded; the rest is unpacked beside it. The fonts are for the pictures.
packages=(chromium fonts-dejavu-core fonts-droid-fallback)
apt-get -qq -y --download-only --no-install-recommends -o Dir::Cache="$cache" install "${packages[@]}" >&2 \
  || give_up 3 "cannot download ${packages[*]}; is the list of packages up to date (apt-get update)?"
for package in "$cache"/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
rm -rf "$cache"

libraries=$(find "$root/usr/lib" -maxdepth 2 -type d \( -name '*-linux-gnu*' -o -name pulseaudio \) | paste -sd:)
cat > "$folder/chromium" <<WRAPPER
#!/bin/sh
export LD_LIBRARY_PATH="$libraries" CHROME_WRAPPER=1 XDG_DATA_HOME="$root/usr/share"
[ -e /etc/fonts/fonts.conf ] || export FONTCONFIG_PATH="$root/etc/fonts"
exec "$root/usr/lib/chromium/chromium" "\$@"
WRAPPER
chmod +x "$folder/chromium"
"$folder/chromium" --no-sandbox --version || give_up 1 "Chromium was installed and does not start"
