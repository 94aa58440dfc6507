"""The server, for which a profile that cannot be read may still be written to an hour after it was touched, however slow the machine is."""

import runpy

from gpa_lsp.editor.protocol import loader as profile_watch

if __name__ == "__main__":
    profile_watch.SETTLED_NS = 3600 * 10**9
    runpy.run_module("gpa_lsp.editor.protocol", run_name="__main__")
