"""SERVE the editor: only ``wire.py`` and ``uris.py`` speak pygls; ``gpa_lsp.editor`` answers in the types of lsprotocol."""
