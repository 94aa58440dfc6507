"""SERVE the editor: only ``wire.py`` and ``uris.py`` speak pygls; only ``protocol_types.py`` turns what ``gpa_lsp.editor`` answers into its types."""
