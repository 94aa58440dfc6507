"""The interactive roofline page: one file that opens from disk, with a chart and the same numbers as tables, kept in step."""
