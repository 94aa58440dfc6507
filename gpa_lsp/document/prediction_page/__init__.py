"""Predictions as a page that opens from disk."""
