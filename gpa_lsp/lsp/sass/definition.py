"""From an operand to the instructions that wrote it, from a branch to its target, from anything else of an instruction to its stall's causes."""

from gpa_lsp.lsp.model import Location, Position
from gpa_lsp.lsp.sass.jumps import locate_row
from gpa_lsp.lsp.sass.model import SassView
from gpa_lsp.lsp.sass.targets import find_target
from gpa_lsp.lsp.sass.value_trace import find_definitions, point_at, span_mention
from gpa_lsp.report.instruction_pairs import join_by_instruction, list_causes

_LEAST_RATIO = 0.1
"""Of the samples an instruction waits: causes with less are not worth a choice, but the first one."""


def find_definition(view: SassView, position: Position) -> list[Location] | None:
    """The definitions of what is under the cursor."""
    pointed = point_at(view, position)
    if pointed is None:
        return None
    value = pointed.value
    if value is not None:
        target = find_target(view.document, pointed.row, value)
        if target is not None:
            return [locate_row(view, target)]
        if value.resources:
            mentions = find_definitions(view, pointed.row, value)
            uri = view.document.uri
            return [Location(uri=uri, range=span_mention(view, mention)) for mention in mentions] or None
    return _find_causes(view, pointed.row) or None


def _find_causes(view: SassView, row: int) -> list[Location]:
    """The instructions that one waits for mostly, most samples first."""
    others = join_by_instruction(list_causes(view.document.shown.kernel.report, row))
    least = _LEAST_RATIO * sum(other.samples for other in others)
    return [locate_row(view, other.row) for place, other in enumerate(others) if place == 0 or other.samples >= least]
