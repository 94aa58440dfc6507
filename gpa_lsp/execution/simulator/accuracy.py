"""How far simulated times are off, and where they say nothing."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.opcodes import Access, describe_mnemonic
from gpa_lsp.code.binary.sass import read_mnemonic
from gpa_lsp.execution.simulator.machine import Traffic

# Measured in November 2026 on the 64 of 87 kernels of public Nsight Compute reports that nothing was fitted on: mean error of the cycles 14.9 %,
# 75 % of them within 20 %. Nothing is known of the errors of other kernels, so there is no range beside one time.
ERROR_WORDS = "on 64 kernels that nothing was fitted on, simulated times were 15 % off on average, and one in four by more than 20 %"

# Share of the executed instructions that are atomics, from which on the time is not told. The model has neither the rate of L2's atomics nor their
# contention: two histograms of those kernels took five and eight times as long as simulated.
_MOST_ATOMICS_RATIO = 0.01

# What the model does not know of, and simulated as several times too fast: naive transposes in .34 to .78 of the measured time, a matrix product of
# 27 GB in .48, a fill in .37. From these shares on, a launch is one of these; those below them, of all that were measured, keep to the errors above.
_MOST_SCATTERED_RATIO = 0.25
_MOST_REFETCHED_RATIO = 1.25
_LEAST_READ_RATIO = 1 / 16

UNCHECKED = "outside of what was checked"
UNKNOWN_TIME = "time unknown: contended atomics are not modelled"


def is_time_known(texts: Sequence[str], executed: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> bool:
    """Whether the model was checked on kernels such as this one.

    Args:
        texts: of the instructions; empty where unknown.
        executed: how often each is executed by warps; below 0 where unknown, which counts as once.

    >>> is_time_known(("LDG.E R0, [R2]", "RED.E.ADD.STRONG.GPU [R4], R0"), np.array([10, 10]))
    False
    """
    weights = np.where(np.asarray(executed) < 0, 1, executed)
    atomics = [row for row, text in enumerate(texts) if text and _is_atomic(text)]
    return not atomics or float(weights[atomics].sum()) < _MOST_ATOMICS_RATIO * float(weights.sum())


def find_unchecked(traffic: Traffic, l2_bytes: float | None) -> str:
    """Why the times of launches such as this one were not checked; empty where they were.

    Args:
        l2_bytes: of the GPU; None where it is not known.
    """
    moved = traffic.stored_bytes + traffic.read_bytes
    if moved and traffic.scattered_bytes >= _MOST_SCATTERED_RATIO * moved:
        return "it stores scattered words, a quarter of a sector at most"
    if l2_bytes and traffic.read_bytes > l2_bytes and traffic.refetched_ratio >= _MOST_REFETCHED_RATIO:
        return "what its blocks read again does not fit into L2"
    if traffic.stored_bytes and traffic.read_bytes < _LEAST_READ_RATIO * traffic.stored_bytes:
        return "it stores and reads next to nothing"
    return ""


def describe_error(unchecked: str) -> str:
    """How far simulated times are off.

    Args:
        unchecked: by :func:`find_unchecked`.
    """
    return f"{UNCHECKED}: {unchecked}, and how far its time is off is unknown" if unchecked else ERROR_WORDS


def _is_atomic(text: str) -> bool:
    return describe_mnemonic(read_mnemonic(text)).access in (Access.ATOMIC, Access.REDUCTION)
