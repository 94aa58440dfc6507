"""Traces ↔ folders of Parquet files."""
