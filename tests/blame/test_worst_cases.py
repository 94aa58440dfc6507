"""Worst cases end, within the work bound, and lose nothing. (``blame_kernel`` checks conservation itself; here it is checked again.)"""

from functools import cache

import numpy as np
import pytest

from gpa_lsp.diagnosis.advice.advise import advise_kernel
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel, check_conservation
from gpa_lsp.diagnosis.blame.model import UnattributedCause
from gpa_lsp.foundation.catalogue import list_members
from gpa_lsp.kernel.model import Kernel
from tests.blame.worst_cases import WORST_CASES


@cache
def write(name: str) -> Kernel:
    return WORST_CASES[name]()


@pytest.mark.parametrize("blamer", sorted(list_members("gpa_lsp.diagnosis.blame.blamers")))
@pytest.mark.parametrize("name", list(WORST_CASES))
def test_blame_ends_and_loses_nothing(name: str, blamer: str) -> None:
    kernel = write(name)
    blame = blame_kernel(kernel, blamer)
    check_conservation(kernel, blame)
    cut_short = np.count_nonzero(blame.unattributed.cause == UnattributedCause.WORK_BOUND)
    assert not cut_short or blame.problems
    assert all(problem.remedy for problem in blame.problems)


@pytest.mark.parametrize("name", list(WORST_CASES))
def test_advice_ends_too(name: str) -> None:
    kernel = write(name)
    advice, problems = advise_kernel(Subject(kernel, blame_kernel(kernel)))
    assert problems == ()
    assert advice.advice or advice.silences


@pytest.mark.parametrize("name", ["one sample", "3.6 million samples"])
def test_sample_counts_do_not_matter_for_who_is_blamed(name: str) -> None:
    edges = blame_kernel(write(name)).edges
    is_load = edges.def_row == 0
    assert edges.all_samples[is_load & (edges.use_row == 1)].sum() == pytest.approx(
        write(name).functions[0].all_samples[1, write(name).reasons.index("long_scoreboard")]
    )
