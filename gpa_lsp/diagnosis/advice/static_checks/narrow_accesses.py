"""Loads and stores of one thread to neighbouring addresses, which one wider access could make."""

from collections.abc import Iterator

from gpa_lsp.code.binary.opcodes import Access
from gpa_lsp.diagnosis.advice.naming import WIDE_TYPES, quote, read_parts
from gpa_lsp.diagnosis.advice.static_checks import StaticCheck
from gpa_lsp.diagnosis.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.foundation.prose import NOTHING, Code, count, say
from gpa_lsp.kernel.dataflow.accesses import AccessRun, find_access_runs

NAME = "narrow-accesses"


def find_narrow_accesses(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per line, deed and width.

    Only accesses whose distance between neighbouring threads is known from the address computation are claimed; that the memory behind the
    pointer begins at a multiple of the merged size cannot be seen in the code, and the remedy says so.
    """
    groups: dict[object, list[AccessRun]] = {}
    for run in find_access_runs(facts.subject.rows):
        access = facts.subject.rows.opcode(run.rows[0]).access
        groups.setdefault((facts.find_frame_and_header(run.rows[0]), access, len(run.rows), run.bytes_each), []).append(
            run
        )
    for runs in groups.values():
        yield _report(facts, runs)


def _report(facts: StaticFacts, runs: list[AccessRun]) -> StaticFinding:
    first = runs[0]
    is_store = facts.subject.rows.opcode(first.rows[0]).access is Access.STORE
    parts = read_parts(facts.subject, first.rows[0])
    names = () if parts is None else parts.stores if is_store else parts.loads
    merged = count(first.merged_bytes, "byte")
    return facts.make_finding(
        NAME,
        [row for run in runs for row in run.rows],
        message=say(
            "Each thread does {accesses} of {size} at adjacent addresses{names}{times}; one of {merged} moves the same.",
            accesses=count(len(first.rows), "store" if is_store else "load"),
            size=count(first.bytes_each, "byte"),
            names=say(" ({names})", names=quote(names)) if names else NOTHING,
            times=say(", {n}", n=count(len(runs), "time")) if len(runs) > 1 else NOTHING,
            merged=merged,
        ),
        remedy=say(
            "{access} {type}, or declare the structure {alignment}; the address must be a multiple of {merged} ({allocation} returns one).",
            access="Store" if is_store else "Load",
            type=WIDE_TYPES[first.merged_bytes],
            alignment=Code(text=f"alignas({first.merged_bytes})"),
            merged=merged,
            allocation=Code(text="cudaMalloc"),
        ),
    )


STATIC_CHECK = StaticCheck(name=NAME, title="Narrow memory accesses", find=find_narrow_accesses)
