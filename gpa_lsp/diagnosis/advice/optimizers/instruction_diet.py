"""Integer, address and control instructions that keep a pipe or the issue slots busy."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.advice.blamed_stalls import build_counted_regions, build_regions, find_edges
from gpa_lsp.diagnosis.advice.model import Category, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.naming import describe_line, describe_scope, find_own_frame
from gpa_lsp.diagnosis.advice.optimizers import UnitOptimizer
from gpa_lsp.diagnosis.advice.reliefs import Relief, Reliefs
from gpa_lsp.diagnosis.advice.unit_pricing import UnitMatch
from gpa_lsp.diagnosis.analyses.limiter.find import find_limiter
from gpa_lsp.diagnosis.analyses.limiter.model import LimiterKind
from gpa_lsp.diagnosis.analyses.mix import CLASSES, WorkClass, classify_rows
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Sentence, list_of, percent, say
from gpa_lsp.kernel.scopes import ScopeKind

_UNITS = frozenset({"issue", "alu", "fma", "xu", "uniform", "sm", "branch"})
# Work that serves other work, and of which there can be less
_HELPERS = (
    WorkClass.INTEGER,
    WorkClass.ADDRESS,
    WorkClass.CONVERSION,
    WorkClass.MOVE,
    WorkClass.CONTROL,
    WorkClass.UNIFORM,
)
_LEAST_SHARE = 0.4
_LEFT = 0.5  # Of the helpers' instructions, where somebody tries. Ours.
_REACH = 0.35  # Part of the way to that, on a logarithmic scale: much of it is what the kernel is for. Ours.
_MOST_LINES = 3

_OUTSIDE = say("code outside loops")


class InstructionDiet(UnitOptimizer):
    """Where instruction issue or an integer pipe limits a kernel, index arithmetic, conversions and branches are what can go.

    Matched: issue or a pipe as the limiter, with at least two fifths of the executed instructions being integers, addresses, conversions, moves or
    control flow. Half of these are taken to stay.
    """

    name = "instruction_diet"
    title = "Execute fewer instructions"
    category = Category.CODE
    group = "instructions"
    reliefs = Reliefs(relieves=frozenset({Relief.OPERATIONS, Relief.ISSUES}))
    needs_samples = False

    def match(self, subject: Subject) -> UnitMatch | Silence:
        """Count helpers among the executed instructions."""
        limiter = find_limiter(subject)
        if limiter.kind is not LimiterKind.UNIT or limiter.unit not in _UNITS:
            return self.unmatched(say("instructions do not limit the kernel: {why}", why=limiter.sentence))
        executions = np.maximum(subject.rows.executions, 0)
        total = int(executions.sum())
        if not subject.rows.has_code or not total:
            return self.silent(SilenceStage.NO_METRICS, say("executions were not collected"))
        numbers = classify_rows(subject)
        helpers = np.isin(numbers, [CLASSES.index(one) for one in _HELPERS])
        share = int(executions[helpers].sum()) / total
        if share < _LEAST_SHARE:
            return self.unmatched(
                say("{share} of the instructions are index arithmetic and control", share=percent(share)),
            )
        left = 1 - share * (1 - _LEFT)
        lines = _list_lines(subject, np.where(helpers, executions, 0))
        edges = find_edges(subject, helpers)
        return UnitMatch(
            leaves={
                "issue": left,
                "alu": _LEFT,
                "uniform": _LEFT,
                "xu": _LEFT,
                "branch": _LEFT,
                "fma": (1 + _LEFT) / 2,
            },
            reach=_REACH,
            regions=build_regions(subject, edges, np.full(len(edges), 1 - _LEFT))
            if subject.total_samples
            else build_counted_regions(subject, np.where(helpers, executions, 0)),
            hint=say(
                "Take index arithmetic out of the inner loops: mostly in {lines}. Strides that are known when compiling, 32-bit "
                "indices, and several elements per thread leave less of it.",
                lines=lines,
            ),
            caveats=(say("The compiler has removed what it could see; look at the SASS of these lines first."),),
            reasons=(
                say(
                    "{share} of the executed instructions are integers, addresses, conversions, moves or control flow",
                    share=percent(share),
                ),
            ),
        )


def _list_lines(subject: Subject, weights: npt.NDArray[np.int64]) -> Sentence:
    """The lines that execute most of something."""
    order = np.argsort(-weights, kind="stable")
    names = dict.fromkeys(_name_place(subject, int(row)) for row in order[: 40 * _MOST_LINES] if weights[row] > 0)
    inside = [name for name in names if name != _OUTSIDE]
    return list_of((inside or list(names))[:_MOST_LINES])


def _name_place(subject: Subject, row: int) -> Sentence:
    """The line of an instruction; of one that has none, the loop around it."""
    if find_own_frame(subject, row) is not None:
        return describe_line(subject, row)
    scope = subject.scopes.scopes[int(subject.scopes.innermost[row])]
    return describe_scope(subject, scope) if scope.kind is ScopeKind.LOOP else _OUTSIDE


OPTIMIZER = InstructionDiet()
