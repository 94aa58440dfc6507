"""Fixes at the lines of a document, and the ways for editors without keys of ours."""

from lsprotocol import types

from gpa_lsp.editor.abilities import Abilities
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.protocol.features.code_actions import answer_code_action
from tests.editor.jobs.test_verified import LISTING
from tests.editor.sessions import Session
from tests.editor.views import make_profile, make_view
from tests.report_builder import build_kernel

SOURCE = """\
__global__ void relax(const float *x, float *y, int n)
{
    for (int i = 0; i < n; ++i)
        y[i] = 0.5 * x[i];  // 𝛼
}
"""


class Showing(Session):
    """A session with one view."""

    def __init__(self, view: DocumentView) -> None:
        super().__init__(opened={})
        self._view = view

    def view(self, uri: str) -> DocumentView | None:
        return self._view if uri == self._view.uri else None


def act(view: DocumentView, line: int, only: list[str] | None = None) -> list[types.CodeAction]:
    position = types.Position(line=line - 1, character=0)
    context = types.CodeActionContext(diagnostics=[], only=only)
    params = types.CodeActionParams(types.TextDocumentIdentifier(view.uri), types.Range(position, position), context)
    return answer_code_action(Showing(view), params) or []


def apply(text: str, edits: list[types.TextEdit]) -> str:
    """UTF-16 columns, as agreed in these tests."""
    lines = text.encode("utf-16-le").split("\n".encode("utf-16-le"))
    for edit in sorted(edits, key=lambda edit: (edit.range.start.line, edit.range.start.character), reverse=True):
        start, end = edit.range.start, edit.range.end
        assert start.line == end.line
        line = lines[start.line]
        new = edit.new_text.encode("utf-16-le")
        lines[start.line] = line[: 2 * start.character] + new + line[2 * end.character :]
    return "\n".encode("utf-16-le").join(lines).decode("utf-16-le")


def fixes(view: DocumentView, line: int) -> dict[str, str]:
    """Title → the text with the fix applied."""
    found = {}
    for action in act(view, line, ["quickfix"]):
        assert action.edit is not None and action.edit.changes is not None and list(action.edit.changes) == [view.uri]
        found[action.title] = apply(view.text, list(action.edit.changes[view.uri]))
    return found


def view(text: str = SOURCE, *, abilities: Abilities | None = None, opened: str | None = None) -> DocumentView:
    kernel = build_kernel(
        LISTING,
        name="relax(const float*, float*, int)",
        blame="2 <- 1   short_scoreboard  R2 6c 1i",
        advice="""
            loop_unrolling code 1.5x
                hint: Unroll the loop in line 3 of relax.cu by 4: it makes n turns.
                region loop 0 1.4x to=4
                    2 <- 1   short_scoreboard
            strength_reduction code 1.2x
                region line 2 1.2x
                    2  short_scoreboard
        """,
    )
    profile = make_profile(kernel, texts={"relax.cu": SOURCE})
    found = make_view(profile, text, path="/project/relax.cu", abilities=abilities, opened=opened)
    assert found is not None
    return found


def test_a_fix_stands_on_the_line_the_advice_is_about() -> None:
    found = fixes(view(), 3)
    (unrolled,) = [
        text
        for title, text in found.items()
        if title.startswith("Put #pragma unroll 4 before the loop (estimated gain: 1.")
    ]
    assert unrolled == SOURCE.replace("    for", "    #pragma unroll 4\n    for")


def test_columns_behind_what_is_not_ascii_are_the_clients() -> None:
    text = SOURCE.replace("y[i] = 0.5", "/* 𝛼 */ y[i] = 0.5")
    found = {title: after for title, after in fixes(view(text), 4).items() if "0.5" in title}
    assert found == {}  # the measured line was edited: nothing is known of it any more
    moved = "// 𝛼\n" + SOURCE
    (single,) = [after for title, after in fixes(view(moved), 5).items() if "0.5f" in title]
    assert single == moved.replace("0.5 *", "0.5f *")


def test_a_fix_of_a_line_is_offered_on_that_line_and_one_of_the_kernel_on_its_first() -> None:
    assert not any("0.5" in title for title in fixes(view(), 5))
    assert any("0.5" in title for title in fixes(view(), 4))
    assert any("unroll" in title for title in fixes(view(), 1))


def test_an_applied_fix_is_not_offered_again() -> None:
    (after,) = [text for title, text in fixes(view(), 3).items() if "unroll" in title]
    assert not any("unroll" in title for title in fixes(view(after, opened=SOURCE), 4))


def test_editors_without_keys_of_ours_get_the_ways_and_others_do_not() -> None:
    plain = {action.command.command for action in act(view(), 4) if action.command is not None}
    assert plain == {"gpaLsp.goToCause", "gpaLsp.openSass", "gpaLsp.showKernel", "gpaLsp.showLine"}
    rich = act(view(abilities=Abilities(heat=True)), 4)
    assert rich and all(action.command is None for action in rich)
    assert not [action for action in act(view(), 4, ["quickfix"]) if action.command is not None]
    assert act(view(), 4, ["source.organizeImports"]) == []
    assert act(view(), 2) == []
