#!/usr/bin/env bash
# Visual Studio Code 1.139 (as code-server packs it), a Node.js to run it, and the driver of its window, all from the npm registry, in a folder of their own;
# and what the extension itself is built with, in editors/vscode/node_modules.
#
#     install_vscode.sh [FOLDER]        FOLDER: $GPA_LSP_EDITORS, or ~/.cache/gpa-lsp-editors
#
# Leaves FOLDER/vscode, FOLDER/node and FOLDER/playwright, and does nothing where they are there and start. Needs npm, python3, make and a C++ compiler.
# Exit status: 0 done; 3 the registry cannot be reached or does not have them; 1 anything else.
set -euo pipefail
folder=$(realpath -m "${1:-${GPA_LSP_EDITORS:-$HOME/.cache/gpa-lsp-editors}}")
code_server=4.139.1
node=24
playwright=1.65.1
quiet=(--no-fund --no-audit --loglevel=error)

give_up() { echo "install_vscode.sh: $2" >&2; exit "$1"; }

# npm install into the folder $1, which becomes a package of its own so that npm looks no further up.
install() {
  local target=$1
  shift
  mkdir -p "$target"
  [ -f "$target/package.json" ] || echo '{ "private": true }' > "$target/package.json"
  (cd "$target" && npm install "${quiet[@]}" "$@" >&2) || give_up 3 "cannot install $* from $(npm config get registry)"
}

command -v npm >/dev/null || give_up 1 "this script needs npm"
extension=$(realpath "$(dirname "$0")/../../editors/vscode")
if ! cmp -s "$extension/package-lock.json" "$extension/node_modules/.installed-lock.json"; then
  (cd "$extension" && npm ci "${quiet[@]}" >&2) || give_up 3 "cannot install the libraries of the extension from $(npm config get registry)"
  cp "$extension/package-lock.json" "$extension/node_modules/.installed-lock.json"
fi
program=$folder/node/node_modules/node/bin/node
code=$folder/vscode/node_modules/code-server/lib/vscode

"$program" --version >/dev/null 2>&1 || install "$folder/node" "node@$node"
[ -f "$folder/playwright/node_modules/playwright-core/package.json" ] || install "$folder/playwright" "playwright-core@$playwright"

if [ -f "$folder/vscode/complete-$code_server" ] && "$program" "$code/out/server-main.js" --version >/dev/null 2>&1; then
  exit 0
fi
rm -rf "$folder/vscode"
# Compiled parts must fit the Node.js that runs them; its headers come with the package.
headers=$(find "$folder/node/node_modules" -maxdepth 6 -path '*/include/node' | head -n 1)
[ -n "$headers" ] || give_up 1 "the package node@$node came without headers"
export JOBS=max npm_config_nodedir=${headers%/include/node} PATH="$(dirname "$program"):$PATH"

# The scripts that run on installing are left out: one refuses root, one downloads a program, one wants Kerberos. What is needed of them is built below.
install "$folder/vscode" --ignore-scripts --omit=dev "code-server@$code_server"
install "$code" --ignore-scripts --omit=dev
install "$code/extensions" --ignore-scripts --omit=dev
for addon in @vscode/native-watchdog @vscode/spdlog; do
  (cd "$code" && npm rebuild "${quiet[@]}" "$addon" >&2) || give_up 1 "cannot compile $addon: are python3, make and a C++ compiler there?"
done
ln -sfn node_modules "$code/node_modules.asar"
"$program" "$code/out/server-main.js" --version >/dev/null || give_up 1 "Visual Studio Code was installed and does not start"
touch "$folder/vscode/complete-$code_server"
"$program" "$code/out/server-main.js" --version
