"""``python -m gpa_lsp``: the command line."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the folder somebody is in: of what lies there, nothing that is imported from here on
    from gpa_lsp.cli.main import main

    sys.exit(main())
