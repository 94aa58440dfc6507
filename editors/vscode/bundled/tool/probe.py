"""Say what this interpreter has, as JSON: its version, the server installed in it, and what the bundled server would lack.

Runs in whatever Python somebody has, so it is written for old ones too.
"""

import json
import sys
from pathlib import Path


def find_installed_server():
    """Version of the installed server, or None."""
    try:
        from importlib.metadata import PackageNotFoundError, version
    except ImportError:
        return None
    try:
        return version("gpa-lsp")
    except PackageNotFoundError:
        return None


def find_missing():
    """Packages that the bundled server needs from its interpreter and does not find."""
    from importlib.util import find_spec

    try:
        modules = json.loads((Path(__file__).resolve().parent.parent / "native.json").read_text())
    except FileNotFoundError:
        return ["gpa-lsp"]  # this copy of the extension was built without the server
    missing = []
    for package, module in sorted(modules.items()):
        try:
            found = find_spec(module) is not None
        except ImportError:
            found = False
        if not found:
            missing.append(package)
    return missing


if __name__ == "__main__":
    answer = {"version": sys.version_info[:2], "server": find_installed_server(), "missing": find_missing()}
    sys.stdout.write(json.dumps(answer))
