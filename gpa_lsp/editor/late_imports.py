"""What the answer to initialize must not wait for: what needs numpy, and what only a person asks for."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.editor.snapshot import VisibleKernel

if TYPE_CHECKING:
    from gpa_lsp.editor.sass.library import SassDocument
    from gpa_lsp.editor.source.fixes import Fix
    from gpa_lsp.report.fixes.results import FixJob


def build_sass(uri: str, shown: VisibleKernel, columns: Sequence[str] | None) -> "SassDocument":
    """The SASS document of a kernel, with the columns that were chosen; None for the usual ones."""
    from gpa_lsp.editor.sass.document import build_document

    return build_document(uri, shown, columns)


def make_fix_jobs(
    fixes: "Sequence[Fix]",
    *,
    path: str,
    text: str,
    roots: tuple[Path, ...],
    architecture: tuple[int, int] | None,
    limit_s: float,
) -> "tuple[FixJob, ...]":
    """The jobs of fixes, see :func:`~gpa_lsp.report.fixes.jobs.make_fix_job`."""
    from gpa_lsp.report.fixes.jobs import make_fix_job

    return tuple(
        make_fix_job(
            fix.shown.kernel.report,
            fix.rewrite.edits,
            path=path,
            text=text,
            lines=fix.lines,
            roots=roots,
            architecture=architecture,
            limit_s=limit_s,
        )
        for fix in fixes
    )


def warm_up_predictions() -> None:
    """Import what a prediction is unpickled into, while it is being made."""
    from gpa_lsp.execution.traces import line_facts, words  # noqa: F401


def warm_up() -> None:
    """Import and read what the first answers need while the first results are being made."""
    from gpa_lsp.code.binary.opcodes import describe_words
    from gpa_lsp.document import markdown, roofline_picture, roofline_text, stall_picture  # noqa: F401
    from gpa_lsp.editor.source import actions  # noqa: F401

    describe_words("LDG")  # reads them all
