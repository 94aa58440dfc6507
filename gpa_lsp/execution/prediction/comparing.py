"""Several launches of one kernel, compared."""

from collections.abc import Sequence

from gpa_lsp.execution.prediction.model import KernelPrediction, LaunchComparison
from gpa_lsp.execution.traces.ask import answer_launches
from gpa_lsp.execution.traces.statistics import spread_listed

_ORIGIN = "emulated"


def compare_launches(predictions: Sequence[KernelPrediction]) -> tuple[LaunchComparison, ...]:
    """One comparison for each kernel of which several launches were traced, in their order."""
    groups: dict[str, list[KernelPrediction]] = {}
    for one in predictions:
        if one.measures:
            groups.setdefault(one.mangled_name, []).append(one)
    return tuple(
        LaunchComparison(
            mangled_name=mangled,
            name=members[0].name,
            launches=len(members),
            answer=answer_launches(spread_listed([one.measures for one in members]), len(members), _ORIGIN),
        )
        for mangled, members in groups.items()
        if len(members) > 1
    )
