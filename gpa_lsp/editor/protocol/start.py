"""The way into the server: ``gpa-lsp serve`` and ``python -m gpa_lsp.editor.protocol``."""

import gc
import sys

# How long a thread that takes apart what was read may keep the one that answers waiting, again and again in one answer; Python's own is 5 ms
_SWITCH_S = 0.001


# Garbage is looked for among young objects often, in less than a millisecond; among all, which takes as long as several answers, rarely
_GARBAGE_THRESHOLDS = 10_000, 10, 100


def serve() -> int:
    """Serve one client over stdin and stdout until it leaves.

    Returns:
        The process' exit status: 0 after an orderly shutdown, 1 when the client was simply gone.
    """
    sys.setswitchinterval(_SWITCH_S)
    gc.disable()  # importing lsprotocol makes 500 classes, none of which is garbage: collecting while at it costs a tenth of the start
    from gpa_lsp.editor.protocol.server import serve_client  # loaded late: it is what takes the time

    gc.freeze()  # nor do later collections have to look at them again
    gc.enable()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    return serve_client()
