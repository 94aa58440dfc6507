"""``python -m gpa_lsp.editor.protocol``: the language server over stdin and stdout."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the folder somebody is in: of what lies there, nothing that is imported from here on
    from gpa_lsp.editor.protocol.start import serve

    sys.exit(serve())
