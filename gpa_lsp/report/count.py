"""Counting samples by reason."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.report.model import ReasonCount, ReasonCounts


def count_reasons(
    reasons: Sequence[str], all_samples: npt.NDArray[np.int64], latency_samples: npt.NDArray[np.int64]
) -> ReasonCounts:
    """Samples by reason, most first, reasons without any left out.

    Args:
        reasons: k names.
        all_samples: int64[k].
        latency_samples: int64[k].

    >>> count_reasons(("wait", "selected"), np.array([5, 9]), np.array([2, 0]))
    {'selected': ReasonCount(all_samples=9, latency_samples=0), 'wait': ReasonCount(all_samples=5, latency_samples=2)}
    """
    rows = sorted(
        zip(reasons, all_samples.tolist(), latency_samples.tolist(), strict=True), key=lambda row: (-row[1], row[0])
    )
    return {reason: ReasonCount(all_samples=every, latency_samples=latency) for reason, every, latency in rows if every}
