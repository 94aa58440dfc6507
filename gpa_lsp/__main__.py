"""``python -m gpa_lsp``: the command line."""

import sys

from gpa_lsp.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
