"""Ask every static check about a kernel that was not measured."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from math import prod
from pathlib import PurePosixPath

from msgspec import Struct

import gpa_lsp.diagnosis.advice.static_checks as catalogue
from gpa_lsp.code.binary.cubin import CompiledLimits
from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.symbolic_accesses.machine_code import lift_machine_code
from gpa_lsp.diagnosis.advice.static_checks import StaticCheck
from gpa_lsp.diagnosis.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.diagnosis.advice.warp_facts import WarpFacts, find_warp_facts
from gpa_lsp.diagnosis.analyses.static.kernel_statics import find_kernel_statics
from gpa_lsp.diagnosis.analyses.static.model import BlockOrigin, KernelStatics, KnownBlock
from gpa_lsp.diagnosis.analyses.subject import SourceReader, Subject
from gpa_lsp.foundation.catalogue import load_catalogue
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.locations import SourceLine
from gpa_lsp.foundation.numbers import format_count_of
from gpa_lsp.foundation.ownership import describe_stand_in
from gpa_lsp.kernel.dataflow.local_accesses import measure_spills
from gpa_lsp.kernel.model import REQUEST_COUNTERS, Kernel

MOST_FINDINGS = 200  # Of one kernel, the weightiest; generated code can have thousands of divisions

# Check of requests or branches → the counter that says the same as measured
_COUNTERS = dict(zip(("uncoalesced-accesses", "bank-conflicts", "divergent-branches"), REQUEST_COUNTERS, strict=True))


class KernelFindings(Struct, frozen=True, kw_only=True):
    """Static findings of one kernel, with its resources."""

    statics: KernelStatics  # resources and occupancy
    place: SourceLine | None  # topmost line of the kernel's body; None for code without lines
    findings: tuple[StaticFinding, ...]  # weightiest first
    problems: tuple[Problem, ...] = ()  # a check that failed, findings that were too many
    # requests to memory and branches by the addresses and conditions in the code; None where they could not be followed
    warps: WarpFacts | None = None


@cache
def list_static_checks() -> Mapping[str, StaticCheck]:
    """The checks, by module name."""
    return load_catalogue(catalogue, "STATIC_CHECK", StaticCheck)


def find_static_findings(
    kernel: Kernel,
    *,
    limits: Mapping[str, CompiledLimits] | None = None,
    blocks: Sequence[KnownBlock] = (),
    read_source: SourceReader | None = None,
    ptx: PtxModule | None = None,
) -> KernelFindings:
    """Resources, occupancy and findings of a kernel by its code alone. What was measured of it is not looked at.

    Args:
        kernel: with its code.
        limits: the bounds of its functions by mangled name (:func:`~gpa_lsp.code.binary.cubin.read_compiled_limits`).
        blocks: known block sizes of its launches.
        read_source: gives the text of a source, for names of variables; None where no source is at hand.
        ptx: that the kernel was made of; without it addresses are followed in its machine code, as far as they can be.
    """
    limits = limits or {}
    subject = Subject(kernel, read_source=read_source or (lambda _: None))
    statics = find_kernel_statics(
        kernel,
        limits=limits.get(kernel.mangled_name),
        blocks=blocks,
        spill_bytes=measure_spills(subject.rows, limits),
    )
    problems: list[Problem] = []
    found: list[StaticFinding] = []
    place = _find_place(subject)
    shape = None if statics.block is None else statics.block.shape
    warps = _find_warp_facts(subject, ptx, shape, place, problems)
    if warps is None and ptx is None:
        problems.extend(_note_unknown(subject))
    for check in list_static_checks().values():
        found.extend(_ask(check, StaticFacts(subject=subject, statics=statics, limits=limits, warps=warps), problems))
    found.sort(key=lambda one: (-one.weight, one.file or "", one.line or 0, one.check))
    if len(found) > MOST_FINDINGS:
        message = f"{format_count_of(len(found) - MOST_FINDINGS, 'static finding')} of less weight left out"
        problems.append(Problem.note(message, kernel=subject.kernel.mangled_name))
    return KernelFindings(
        statics=statics, place=place, warps=warps, findings=tuple(found[:MOST_FINDINGS]), problems=tuple(problems)
    )


def find_access_findings(
    kernel: Kernel, read_source: SourceReader
) -> tuple[tuple[StaticFinding, ...] | None, tuple[Problem, ...]]:
    """Find requests and branches that cost much by a kernel's machine code, where no counter of a profile tells.

    Where the kernel's own source is not at hand, files beside it count as the user's: a line can be named without its text.

    Args:
        kernel: measured or not; its profile has no PTX of it.
        read_source: gives the text of a source.

    Returns:
        Findings, weightiest first: none where all was counted, None where the code cannot be followed; and checks that failed.
    """
    asked = [
        check
        for check in list_static_checks().values()
        if check.name in _COUNTERS and kernel.rows.counter(_COUNTERS[check.name]) is None
    ]
    if not asked or not kernel.rows.has_code:
        return (), ()
    subject = Subject(kernel, read_source=read_source)
    place = _find_place(subject)
    if place is not None and read_source(place.file) is None:
        subject = Subject(kernel, read_source=partial(_read_or_name, read_source, _find_folder(place.file)))
    statics = find_kernel_statics(kernel, blocks=_list_measured_blocks(kernel))
    problems: list[Problem] = []
    shape = None if statics.block is None else statics.block.shape
    warps = _find_warp_facts(subject, None, shape, place, problems)
    if warps is None:
        return None, tuple(problems)
    facts = StaticFacts(subject=subject, statics=statics, limits={}, warps=warps)
    found = [one for check in asked for one in _ask(check, facts, problems)]
    found.sort(key=lambda one: (-one.weight, one.file or "", one.line or 0, one.check))
    return tuple(found[:MOST_FINDINGS]), tuple(problems)


def _list_measured_blocks(kernel: Kernel) -> tuple[KnownBlock, ...]:
    """The one block shape of all launches; empty where they differ, or it is unknown."""
    shapes = {launch.block for launch in kernel.launches}
    shape = shapes.pop() if len(shapes) == 1 else None
    if shape is None:
        return ()
    return (KnownBlock(threads=prod(shape), origin=BlockOrigin.PROFILE, shape=shape),)


def _find_folder(file: str) -> str:
    return str(PurePosixPath(file.replace("\\", "/")).parent)


def _read_or_name(read_source: SourceReader, folder: str, file: str) -> str | None:
    text = read_source(file)
    return "" if text is None and _find_folder(file) == folder else text


def _find_warp_facts(
    subject: Subject,
    ptx: PtxModule | None,
    shape: tuple[int, int, int] | None,
    place: SourceLine | None,
    problems: list[Problem],
) -> WarpFacts | None:
    name = subject.kernel.mangled_name
    text = None if place is None else subject.read_text(place.file)
    try:
        lifted = _lift(subject.kernel) if ptx is None else None
        module, sizes = (ptx, None) if lifted is None else lifted
        if module is None:
            return None
        return find_warp_facts(
            module, name, shape=shape, file="" if place is None else place.file, text=text, lifted_sizes=sizes
        )
    except Exception as error:
        message = f"the addresses of the kernel were not followed: {type(error).__name__}: {error}"
        problems.append(
            Problem.warning(
                message, "please report this with the source", path=subject.kernel.profile_path, kernel=name
            )
        )
        return None


def _lift(kernel: Kernel) -> tuple[PtxModule, tuple[int, ...]] | None:
    """The address arithmetic of its machine code; None where that cannot be followed."""
    instructions = kernel.functions[0].instructions if kernel.functions else None
    if instructions is None or kernel.cubin is None:
        return None
    return lift_machine_code(kernel.mangled_name, instructions, kernel.rows.chain, sm=kernel.cubin.sm or 0)


def _note_unknown(subject: Subject) -> Iterator[Problem]:
    """Note that a kernel's addresses were not followed; nothing for one without code."""
    if not subject.kernel.functions or subject.kernel.functions[0].instructions is None:
        return
    yield Problem.note(
        "what its requests to memory cost is not known: it has no PTX here, and its machine code cannot be followed",
        kernel=subject.kernel.mangled_name,
    )


def _find_place(subject: Subject) -> SourceLine | None:
    scope = subject.scopes.scopes[0]
    return SourceLine(file=scope.file, line=scope.line) if scope.file is not None and scope.line else None


def _ask(check: StaticCheck, facts: StaticFacts, problems: list[Problem]) -> list[StaticFinding]:
    """One check's findings; a fault in it is a problem, and the others go on.

    What code of our stand-ins for headers does is left out, but for its requests, whose addresses the program chooses.
    """
    try:
        return [one for one in check.find(facts) if check.name in _COUNTERS or not describe_stand_in(one.chain)]
    except Exception as error:
        message = f"the static check {check.name} failed: {type(error).__name__}: {error}"
        problems.append(
            Problem.warning(
                message,
                "please report this with the source",
                path=facts.subject.kernel.profile_path,
                kernel=facts.subject.kernel.mangled_name,
            )
        )
        return []
