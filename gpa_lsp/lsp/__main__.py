"""``python -m gpa_lsp.lsp``: the language server over stdin and stdout."""

import sys

from gpa_lsp.lsp.start import serve

if __name__ == "__main__":
    sys.exit(serve())
