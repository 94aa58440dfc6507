"""Conversions between number types in loops, on GPUs where their unit is narrow."""

from collections.abc import Iterator

import numpy as np

from gpa_lsp.diagnosis.advice.arithmetic_hints import choose_slow_remedy, describe_slow
from gpa_lsp.diagnosis.advice.slow_arithmetic import SlowKind, Slowness, find_slowness
from gpa_lsp.diagnosis.advice.static_checks import StaticCheck
from gpa_lsp.diagnosis.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.kernel.dataflow.arithmetic import find_arithmetic_sequences

NAME = "conversions"


def find_conversions(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per line and instruction; those that belong to divisions, functions and double literals are left to these."""
    slow = _find_slow(facts.subject)
    by_mnemonic: dict[str, list[int]] = {}
    for row in slow:
        by_mnemonic.setdefault(facts.subject.rows.mnemonic(row), []).append(row)
    for rows in by_mnemonic.values():
        for members in facts.group_by_line(rows):
            slowness = slow[members[0]]
            yield facts.make_finding(
                NAME,
                members,
                message=describe_slow(facts.subject, members[0], slowness),
                remedy=choose_slow_remedy(slowness),
            )


def _find_slow(subject: Subject) -> dict[int, Slowness]:
    architecture = subject.kernel.architecture
    if architecture is None:
        return {}
    found = {}
    for row in np.flatnonzero(~find_arithmetic_sequences(subject.rows).mark()).tolist():
        mnemonic = subject.rows.mnemonic(row)
        slowness = find_slowness(architecture, mnemonic) if mnemonic else None
        if slowness is not None and slowness.kind is SlowKind.CONVERSION and subject.scopes.loop_of(row) >= 0:
            found[row] = slowness
    return found


STATIC_CHECK = StaticCheck(name=NAME, title="Conversion in a loop", find=find_conversions)
