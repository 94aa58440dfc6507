"""GATHER: results of all stages → :class:`~gpa_lsp.report.model.Report`, with indexes by source line and by pc."""
