"""Loads and stores of one thread to neighbouring addresses, which one wider access could make."""

from collections.abc import Iterator

from gpa_lsp.advice.hint_words import count_things
from gpa_lsp.advice.source_words import quote, read_parts
from gpa_lsp.advice.static_checks import StaticCheck
from gpa_lsp.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.binary.opcodes import Access
from gpa_lsp.dataflow.adjacent_accesses import AccessRun, find_access_runs

NAME = "narrow-accesses"

_TYPES = {2: "a 16-bit type", 4: "a 32-bit type", 8: "`float2` or `uint2`", 16: "`float4` or `uint4`"}


def find_narrow_accesses(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per line, deed and width.

    Only accesses whose distance between neighbouring threads is known from the address computation are claimed; that the memory behind the
    pointer begins at a multiple of the merged size cannot be seen in the code, and the remedy says so.
    """
    groups: dict[object, list[AccessRun]] = {}
    for run in find_access_runs(facts.subject.rows):
        access = facts.subject.rows.opcode(run.rows[0]).access
        groups.setdefault((facts.find_frame(run.rows[0]), access, len(run.rows), run.bytes_each), []).append(run)
    for runs in groups.values():
        yield _report(facts, runs)


def _report(facts: StaticFacts, runs: list[AccessRun]) -> StaticFinding:
    first = runs[0]
    is_store = facts.subject.rows.opcode(first.rows[0]).access is Access.STORE
    parts = read_parts(facts.subject, first.rows[0])
    names = () if parts is None else parts.stores if is_store else parts.loads
    named = f" ({quote(names)})" if names else ""
    deed = "stores" if is_store else "loads"
    times = f", {count_things(len(runs), 'time')}" if len(runs) > 1 else ""
    size = count_things(first.bytes_each, "byte")
    return facts.make_finding(
        NAME,
        [row for run in runs for row in run.rows],
        message=(
            f"A thread makes {len(first.rows)} {deed} of {size} to neighbouring addresses{named}{times}; one of {first.merged_bytes} bytes "
            "moves the same."
        ),
        remedy=(
            f"{'Store' if is_store else 'Load'} {_TYPES[first.merged_bytes]}, or give the structure `alignas({first.merged_bytes})`. "
            f"The address must be a multiple of {first.merged_bytes}: memory of cudaMalloc begins at one."
        ),
    )


STATIC_CHECK = StaticCheck(name=NAME, title="Narrow memory accesses", find=find_narrow_accesses)
