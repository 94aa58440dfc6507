"""``gpaLsp.showReport``: a page with every kernel that is shown, longest first."""

from gpa_lsp.editor.line_words import find_top_reason
from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.editor.snapshot import Snapshot, VisibleKernel
from gpa_lsp.foundation.numbers import format_count


def show_report(session: Session, arguments: Arguments) -> str:
    """Show all kernels."""
    del arguments
    return session.client.show_document("kernels", describe_all(session.snapshot))


def describe_all(snapshot: Snapshot) -> str:
    """The page."""
    if not snapshot.visible:
        return "# No profile\n\nNo profile was found in the workspace, or none of them could be read.\n"
    from gpa_lsp.document.blocks import Part, Table
    from gpa_lsp.document.layout import Align, Column, Style
    from gpa_lsp.document.markdown import write_markdown

    titles = {
        "kernel": Align.LEFT,
        "time": Align.RIGHT,
        "samples": Align.RIGHT,
        "mostly": Align.LEFT,
        "profile": Align.LEFT,
    }
    columns = [Column(title=title, align=align) for title, align in titles.items()]
    rows = [[(cell, Style.PLAIN) for cell in _make_row(shown)] for shown in snapshot.visible]
    return (
        "\n".join(write_markdown([Part(title="Kernels", blocks=[Table(columns=columns, rows=rows)])], level=1)) + "\n"
    )


def _make_row(shown: VisibleKernel) -> tuple[str, str, str, str, str]:
    from gpa_lsp.document.sampling_words import describe_time  # it needs numpy

    report = shown.kernel.report
    name = shown.name
    reason = find_top_reason(report.by_reason) or ""
    return (
        name,
        describe_time(report, report.duration_ns),
        format_count(report.total_samples),
        reason,
        shown.profile.path.name,
    )


COMMAND = Command(name="gpaLsp.showReport", run=show_report)
