"""SERVE the editor: only ``wire.py`` and ``uris.py`` speak pygls; the features answer from immutable snapshots."""
