"""Writes the SASS document of a kernel."""

from gpa_lsp.lsp.sass.model import SassDocument
from gpa_lsp.lsp.session import VisibleKernel


def build_document(uri: str, shown: VisibleKernel) -> SassDocument:
    """The document of a kernel."""
    import numpy as np

    columns = shown.kernel.report.instructions
    lines = tuple(text for text in columns.texts)
    return SassDocument(
        uri=uri,
        shown=shown,
        lines=(*lines, ""),
        row_of_line=np.append(np.arange(len(lines), dtype=np.int32), np.int32(-1)),
        line_of_row=np.arange(1, len(lines) + 1, dtype=np.int32),
        instruction_column=0,
        sections=(),
    )
