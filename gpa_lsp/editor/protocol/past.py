"""Baselines, and comparing again what is shown: when a baseline was pinned, or an older measurement came after a newer one.

Blocks on the database: call it off the event loop.
"""

from collections.abc import Mapping, Sequence

from gpa_lsp.editor.snapshot import MeasuredKernel
from gpa_lsp.report.history.model import KernelHistory


def pin_kernels(kernels: Sequence[MeasuredKernel], *, is_pinned: bool) -> int:
    """Make measurements the baselines of their kernels, or take the baselines away.

    Raises:
        InputError: the history cannot be written.
    """
    from gpa_lsp.report.history.store import (
        History,  # a Python without SQLite must do without a past, not without the rest
    )

    count = 0
    with History() as history:
        for kernel in kernels:
            run = None if kernel.history is None else history.find_run(kernel.history.run.run_id)
            if run is None:
                continue
            if is_pinned:
                history.pin(run.run_id)
                count += 1
            elif (baseline := history.find_baseline_of(run)) is not None:
                count += history.unpin(baseline.measurement.key)
    return count


def compare_again(kernels: Sequence[MeasuredKernel]) -> Mapping[int, KernelHistory]:
    """The past of kernels as it is known now.

    Returns:
        ``id`` of the kernel → what changed; kernels that are not remembered are left out.

    Raises:
        InputError: the history cannot be read.
    """
    from gpa_lsp.report.history.past import compare_with_past
    from gpa_lsp.report.history.store import History

    found: dict[int, KernelHistory] = {}
    with History() as history:
        for kernel in kernels:
            run = None if kernel.history is None else history.find_run(kernel.history.run.run_id)
            if run is not None:
                found[id(kernel)] = compare_with_past(history, run)
    return found
