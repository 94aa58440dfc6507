"""The blamers: each file defines ``BLAMER``, one way of finding the cause of a sample. Adding a file adds a blamer."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.diagnosis.blame.issue_counts import count_issues
from gpa_lsp.diagnosis.blame.model import BlameEdges, IssueCounts, Unattributed
from gpa_lsp.diagnosis.blame.view import FunctionView, WorkBudget
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.model import Kernel


class FunctionBlame(ColumnRecord, frozen=True, kw_only=True):
    """Causes found in one function. Rows are instruction numbers of the function, groups count from 0."""

    edges: BlameEdges  # causes and their shares
    unattributed: Unattributed  # samples without a cause
    # int64[m, 2], unique (use, def) rows of the dependency graph before pruning, for the node coverage; reasons that stay with their instruction left
    # out
    before: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]  # those after pruning


class Blamer(Struct, frozen=True, kw_only=True):
    """One way of finding causes."""

    name: str  # as on the command line
    description: str  # one sentence
    # finds the causes of all samples of a function; conservation holds per row and reason with any budget
    blame: Callable[[FunctionView, WorkBudget], FunctionBlame]
    count_issues: Callable[[Kernel], IssueCounts] = count_issues  # how often each row issued, by which causes share
    follows_calls: bool = True  # stalls at the entry of a called function can have causes before its calls
