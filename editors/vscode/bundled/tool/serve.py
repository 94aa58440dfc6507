"""Serve with the copy of the server beside this file.

The extension puts ``bundled/server`` on PYTHONPATH, because the server starts further processes of itself; it holds nothing but the server, so
that programs of the user which inherit it find nothing else there. The libraries come last: those of the interpreter go first.
"""

import sys
from pathlib import Path

BUNDLED = Path(__file__).resolve().parent.parent

if __name__ == "__main__":
    sys.path[0] = str(BUNDLED / "server")
    sys.path.append(str(BUNDLED / "libs"))
    from gpa_lsp.lsp.start import serve

    sys.exit(serve())
