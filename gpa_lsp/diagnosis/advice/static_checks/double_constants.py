"""Single precision values that a double literal takes into double precision: computed with and narrowed again, or compared."""

from collections.abc import Iterator, Sequence

from gpa_lsp.diagnosis.advice.arithmetic_hints import (
    choose_widened_remedy,
    correct_doubles,
    describe_doubles,
    describe_widened,
    find_double_row,
)
from gpa_lsp.diagnosis.advice.naming import locate, read_parts
from gpa_lsp.diagnosis.advice.static_checks import StaticCheck
from gpa_lsp.diagnosis.advice.static_model import Certainty, StaticFacts, StaticFinding
from gpa_lsp.foundation.prose import say
from gpa_lsp.kernel.dataflow.arithmetic import find_arithmetic_sequences
from gpa_lsp.kernel.dataflow.expansions import Chain, is_in_chain, is_widening
from gpa_lsp.kernel.dataflow.value_flow import FunctionFlow, build_flow

NAME = "double-constants"

_LONGEST_CHAIN = 40
_COMPARISON = "DSETP"


def find_double_constants(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per line: what is narrowed again, and where the line has a double literal also what is only compared."""
    found = find_arithmetic_sequences(facts.subject.rows)
    chains_at: dict[int, list[tuple[int, ...]]] = {}
    for chain in found.widened:
        chains_at.setdefault(find_double_row(facts.subject, chain), []).append(chain)
    for anchors in facts.group_by_line(chains_at):
        yield _report_narrowed(facts, [chain for anchor in anchors for chain in chains_at[anchor]])
    known = {row for chain in found.widened for row in chain}
    compared: dict[int, tuple[int, ...]] = {}
    for index in range(len(facts.subject.rows.functions)):
        flow = build_flow(facts.subject.rows, index)
        if flow is not None:
            compared.update(_find_compared(flow, known))
    members = {row for chain in compared.values() for row in chain}
    for rows in facts.group_by_line(sorted(members)):
        finding = _report_compared(facts, rows)
        if finding is not None:
            yield finding


def _report_narrowed(facts: StaticFacts, chains: Sequence[tuple[int, ...]]) -> StaticFinding:
    rows = sorted(row for chain in chains for row in chain)
    anchor = find_double_row(facts.subject, rows)
    parts = read_parts(facts.subject, anchor)
    has_literal = parts is not None and bool(parts.doubles)
    return facts.make_finding(
        NAME,
        rows,
        message=describe_widened(facts.subject, rows, len(chains)),
        remedy=choose_widened_remedy(facts.subject, rows),
        certainty=Certainty.CERTAIN if has_literal else Certainty.LIKELY,
        anchor=anchor,
    )


def _find_compared(flow: FunctionFlow, known: set[int]) -> dict[int, tuple[int, ...]]:
    """Row of a widening → the rows of a chain from it that ends in comparisons and nothing else; rows are the subject's."""
    found = {}
    for row in range(len(flow)):
        if flow.first_row + row in known or not is_widening(flow, row):
            continue
        chain = _follow(flow, row)
        if chain:
            found[flow.first_row + row] = tuple(flow.first_row + one for one in chain)
    return found


def _follow(flow: FunctionFlow, widening: int) -> tuple[int, ...]:
    """The widening and what its value goes through; empty where anything but arithmetic and comparisons reads it, or nothing compares."""
    members, values = [widening], set(flow.writes_of[widening])
    has_comparison = False
    for row in flow.rows_after(widening, _LONGEST_CHAIN):
        if not values:
            break
        writes = set(flow.writes_of[row])
        if values.isdisjoint(flow.reads_of[row]):
            values -= writes
            continue
        name = flow.mnemonic(row).split(".")[0]
        if name == _COMPARISON:
            has_comparison = True
        elif name in ("DADD", "DMUL", "DFMA") or _is_move(flow, row):
            values |= writes
        else:
            return ()
        members.append(row)
    return tuple(members) if has_comparison else ()


def _is_move(flow: FunctionFlow, row: int) -> bool:
    return is_in_chain(flow.mnemonic(row), Chain.MOVES)


def _report_compared(facts: StaticFacts, rows: Sequence[int]) -> StaticFinding | None:
    """About the part of such chains on one line; None where it has no double literal: then the author may well mean doubles."""
    parts = read_parts(facts.subject, rows[0])
    if parts is None or not parts.doubles:
        return None
    place = locate(facts.subject, rows[0])
    what = describe_doubles(parts.doubles)
    return facts.make_finding(
        NAME,
        rows,
        message=say("FP32 values {place} are widened to FP64 to be compared. {what}.", place=place, what=what),
        remedy=say("Write {fixed}.", fixed=correct_doubles(parts.doubles)),
        certainty=Certainty.LIKELY,
    )


STATIC_CHECK = StaticCheck(name=NAME, title="Double literals in float code", find=find_double_constants)
