"""SERVE the editor: only ``server.py`` speaks pygls; the features answer from immutable snapshots."""
