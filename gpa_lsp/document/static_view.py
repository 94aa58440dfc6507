"""VIEW: static findings of sources: notices on lines, a page for each kernel, and JSON."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.symbolic_accesses.model import SymbolicAccess
from gpa_lsp.diagnosis.advice.find_statics import KernelFindings
from gpa_lsp.diagnosis.advice.static_model import StaticFinding
from gpa_lsp.diagnosis.advice.warp_facts import WarpFacts, describe_access, describe_cost, describe_pattern
from gpa_lsp.diagnosis.analyses.static.model import (
    KernelStatics,
    describe_block,
    describe_occupancy,
    describe_resources,
)
from gpa_lsp.document.blocks import Block, Item, Items, Paragraph, Part, Table, tabulate
from gpa_lsp.document.check_view import describe_by_code, make_code_rule
from gpa_lsp.document.layout import Span, Style, flexible, left, right
from gpa_lsp.document.notices import Notice, build_notices, list_problems
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.execution.compiler.model import CompilerMessage
from gpa_lsp.execution.prediction.static_source import SourceStatics
from gpa_lsp.foundation.json_records import pick
from gpa_lsp.foundation.locations import Frame, write_place
from gpa_lsp.foundation.numbers import UNKNOWN, format_bytes, format_count, format_count_of, format_percent
from gpa_lsp.foundation.ownership import find_frame_in
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, join
from gpa_lsp.kernel.line_waits import LineWait, find_wait
from gpa_lsp.kernel.names import demangle, shorten_name

_SCHEMA = "gpa-lsp static 1"
_MOST_FINDINGS = 50
_MOST_INSTRUCTIONS = 4
_MOST_REQUESTS = 200


# Linkage name → lines that the kernel is stalled on, of those that were simulated
Waits = Mapping[str, Sequence[LineWait]]
_COMMAND = "--stalls simulates whether a kernel is stalled on its lines"


def build_static(
    sources: Sequence[SourceStatics],
    findings: Sequence[StaticFinding],
    places: PlaceNames,
    waits: Waits | None = None,
) -> list[Paragraph]:
    """Compiler messages and problems, resources per kernel, findings, and their number.

    Args:
        sources: what was looked at.
        findings: of them, in the order to be shown.
        places: how sources are shown.
        waits: of kernels that were simulated; None where that was not asked for.
    """
    kernels = [
        (source, one) for source in sources for one in sorted(source.kernels, key=partial(_find_line, source=source))
    ]
    counted = f"{format_count_of(len(findings), 'static finding')} in {format_count_of(len(kernels), 'kernel')}"
    counted = counted if kernels else "no kernel found"
    launched = {one.statics.mangled_name for _, one in kernels if one.statics.block is not None}
    is_open = waits is None and any(one.kernel in launched and one.file is not None for one in findings)
    return [
        *build_notices(list_static_notices(sources, (), waits), places),
        *(_tell_resources(kernel, source, places) for source, kernel in kernels),
        *build_notices([_make_notice(one, waits) for one in findings], places),
        Paragraph(text=((f"{counted}; nothing was measured{f'; {_COMMAND}' if is_open else ''}", Style.DIM),)),
    ]


def list_static_notices(
    sources: Sequence[SourceStatics], findings: Sequence[StaticFinding], waits: Waits | None = None
) -> list[Notice]:
    """Compiler messages, problems, and findings in the order given; *waits* as for :func:`build_static`."""
    return [*_list_remarks(sources), *(_make_notice(one, waits) for one in findings)]


def _find_wait(finding: StaticFinding, waits: Waits | None) -> LineWait | None:
    known = () if waits is None else waits.get(finding.kernel, ())
    return None if finding.file is None else find_wait(known, finding.file, finding.line or 0)


def describe_static(finding: StaticFinding, waits: Waits | None = None) -> Sentence:
    """A finding as one sentence or two, marked as not measured; *waits* as for :func:`build_static`."""
    wait = _find_wait(finding, waits)
    return describe_by_code(finding.message, finding.remedy, finding.check, finding.certainty.value, wait)


def _list_remarks(sources: Sequence[SourceStatics]) -> list[Notice]:
    found: list[Notice] = []
    for source in sources:
        found += [_make_message(message, source) for message in source.unit.messages]
        found += [Notice(text=note, path=source.path) for note in source.unit.notes]
        found += list_problems(source.problems)
    return found


def _make_message(message: CompilerMessage, source: SourceStatics) -> Notice:
    path = message.path or source.path
    return Notice(
        text=f"{message.text} [{message.number}]" if message.number else message.text,
        level=message.severity,
        title=source.unit.compiler or "compiler",
        frame=Frame(file=str(path), line=message.line) if message.line else None,
        column=message.column,
        path=path,
    )


def _make_notice(finding: StaticFinding, waits: Waits | None) -> Notice:
    wait = _find_wait(finding, waits)
    file = Path(finding.file or "").name
    return Notice(
        text=describe_static(finding, waits),
        title=f"GPU code: {finding.check} (static)",
        rule=make_code_rule(finding.check),
        function=finding.kernel,
        frame=None if finding.file is None else Frame(file=finding.file, line=finding.line or 0),
        name=shorten_name(demangle(finding.kernel)),
        identity=("gpaLspStatic/v1", finding.kernel, file, finding.check),
        properties={
            "static": True,
            "certainty": finding.certainty.value,
            "loopDepth": finding.loop_depth,
            **({} if wait is None else {"stalledRatio": wait.ratio}),
            "instructions": [f"{one.pc_offset:#x} {one.text}" for one in finding.instructions],
        },
    )


def _find_line(kernel: KernelFindings, source: SourceStatics) -> int:
    """Line of the kernel's body in the source; 0 where it is elsewhere."""
    return kernel.place.line if kernel.place is not None and kernel.place.file == str(source.path) else 0


def _tell_resources(kernel: KernelFindings, source: SourceStatics, places: PlaceNames) -> Paragraph:
    place = write_place(places.show_path(source.path), _find_line(kernel, source))
    words = f"{shorten_name(demangle(kernel.statics.mangled_name))}: {describe_resources(kernel.statics)} [static]"
    return Paragraph(text=((f"{place}: ", Style.PATH), ("info: ", Style.NOTE), (words, Style.PLAIN)))


def build_static_kernel(kernel: KernelFindings, compiler: str) -> Part:
    """A compiled kernel: resources, occupancy over block size, and findings by line.

    Args:
        kernel: what its code says.
        compiler: name and version of what compiled it; empty when unknown.
    """
    statics = kernel.statics
    capability = statics.compute_capability
    target = f" for compute capability {capability[0]}.{capability[1]}" if capability is not None else ""
    by = f" by {compiler}" if compiler else ""
    lead: list[Span] = [(f"Compiled{by}{target}. ", Style.PLAIN), ("Static", Style.TITLE)]
    blocks: list[Block] = [
        Paragraph(text=(*lead, (": derived from the code alone; nothing was measured.", Style.PLAIN))),
        _tabulate_resources(statics),
        *_tabulate_blocks(statics),
        *_list_findings(kernel.findings),
        *_tabulate_requests(kernel),
    ]
    return Part(title=shorten_name(demangle(statics.mangled_name)), style=Style.TITLE, blocks=blocks)


def _tabulate_resources(statics: KernelStatics) -> Table:
    rows = (
        ("registers per thread", format_count(statics.registers)),
        ("register limit of the compiler", format_count(statics.register_cap)),
        ("static shared memory per block", format_bytes(statics.shared_static_bytes)),
        ("local memory per thread", UNKNOWN if statics.local_bytes is None else format_bytes(statics.local_bytes)),
        ("spilled registers per thread", format_bytes(statics.spill_bytes)),
        ("barriers", format_count(statics.barriers)),
    )
    return tabulate(rows, [(left("resource"), lambda row: row[0]), (right(), lambda row: row[1])])


def _tabulate_blocks(statics: KernelStatics) -> list[Block]:
    if not statics.by_block:
        return [Paragraph(text="The occupancy is unknown: we have no table of this architecture.")]
    text = "The block size is unknown; a launch with constant dimensions, launch bounds or a launch description would tell."
    if statics.block is not None:
        text = f"{describe_occupancy(statics)} for {describe_block(statics.block)}. {statics.next_step}".strip()
    own = None if statics.block is None else statics.block.threads
    table = tabulate(
        statics.by_block,
        [
            (right("threads per block"), lambda row: format_count(row[0])),
            (right("blocks per SM"), lambda row: format_count(row[1].blocks_per_sm)),
            (right("warps per SM"), lambda row: format_count(row[1].warps_per_sm)),
            (right("occupancy"), lambda row: format_percent(row[1].ratio)),
            (left("limited by"), lambda row: ", ".join(limit.value for limit in row[1].limiters)),
        ],
        current_row=next((number for number, (threads, _) in enumerate(statics.by_block) if threads == own), None),
    )
    return [Paragraph(text=text), table]


def _list_findings(findings: Sequence[StaticFinding]) -> Iterator[Part]:
    items = []
    for finding in findings:
        line = "" if finding.line is None else f"line {finding.line}: "
        says = ((line, Style.PLAIN), (join((finding.message, finding.remedy)), Style.PLAIN))
        code = [
            Item(text=((f"{one.pc_offset:#06x}  {one.text}", Style.CODE),))
            for one in finding.instructions[:_MOST_INSTRUCTIONS]
        ]
        check = (f" ({finding.check}, {finding.certainty.value})", Style.DIM)
        items.append(Item(text=(*says, check), below=[Items(items=code)]))
    if items:
        yield Part(title="Findings in the code", blocks=[Items(items=items, most_items=_MOST_FINDINGS)])


def _tabulate_requests(kernel: KernelFindings) -> Iterator[Part]:
    """Requests to global and shared memory by line, from the accesses' addresses."""
    facts, place = kernel.warps, kernel.place
    if facts is None or place is None:
        return
    counts: Counter[tuple[int, tuple[Sentence, ...]]] = Counter()
    for access in facts.found.accesses:
        frame = find_frame_in(access.instruction.chain, place.file.__eq__)
        if frame is not None:
            counts[frame.line, _describe_request(facts, access)] += 1
    table = tabulate(
        [(line, words, number) for (line, words), number in sorted(counts.items())],
        [
            (right("line"), lambda row: str(row[0])),
            (flexible("access"), lambda row: row[1][0]),
            (flexible("threads of a warp"), lambda row: row[1][1]),
            (flexible("cost"), lambda row: row[1][2]),
            (right("instructions"), lambda row: format_count(row[2])),
        ],
        most_rows=_MOST_REQUESTS,
    )
    if table.rows:
        yield Part(title=f"Requests of a warp{facts.assumption}", blocks=[table])


def _describe_request(facts: WarpFacts, access: SymbolicAccess) -> tuple[Sentence, ...]:
    noun = "wavefront" if access.space == Space.SHARED else "sector"
    cost = NOTHING if access.cost is None else join((describe_cost(access, noun), facts.describe_condition(access)), "")
    return describe_access(facts, access, begins=""), describe_pattern(facts, access), cost


def make_static_json(sources: Sequence[SourceStatics], waits: Waits | None = None) -> dict[str, Any]:
    """All facts of the sources as JSON; *waits* as for :func:`build_static`."""
    return {"schema": _SCHEMA, "sources": [_make_source(source, waits) for source in sources]}


def _make_source(source: SourceStatics, waits: Waits | None) -> dict[str, Any]:
    unit = source.unit
    return {
        "path": str(source.path),
        **pick(unit, "compiler compute_capability is_host_left_out"),
        "compile_s": round(unit.seconds, 4),
        "messages": [pick(one, "severity text path=file line column number") for one in unit.messages],
        "notes": list(unit.notes),
        "problems": [str(problem) for problem in source.problems],
        "kernels": [_make_kernel(kernel, waits) for kernel in source.kernels],
    }


def _make_kernel(kernel: KernelFindings, waits: Waits | None) -> dict[str, Any]:
    statics, place = kernel.statics, kernel.place
    return {
        "mangled_name": statics.mangled_name,
        "name": demangle(statics.mangled_name),
        "file": None if place is None else place.file,
        "line": None if place is None else place.line,
        **pick(statics, "registers register_cap shared_static_bytes local_bytes spill_bytes barriers most_threads"),
        "occupancy": _make_occupancy(statics),
        "by_block": [
            {"threads": threads, **pick(one, "blocks_per_sm warps_per_sm ratio=occupancy_ratio")}
            for threads, one in statics.by_block
        ],
        "findings": [_make_finding(finding, waits) for finding in kernel.findings],
        "requests": []
        if kernel.warps is None
        else [_make_request(one, kernel.warps) for one in kernel.warps.found.accesses],
    }


def _make_request(access: SymbolicAccess, facts: WarpFacts) -> dict[str, Any]:
    """An access as JSON; costs are sectors of global memory, wavefronts of shared memory, and null where unknown."""
    frame = next(iter(access.instruction.chain or ()), None)
    stride = facts.describe_stride(access)
    return {
        "file": None if frame is None else frame.file,
        "line": None if frame is None else frame.line,
        "space": access.space.name.lower(),
        "kind": access.kind.name.lower(),
        "array": facts.find_array(access),
        **pick(access, "bytes_each=bytes_per_thread pattern"),
        "stride": stride.text if isinstance(stride, Code) else stride and str(stride),
        **pick(access, "cost=cost_per_request most=most_per_request ideal=ideal_per_request"),
        "condition": facts.describe_condition(access).strip() or None,
        "is_certain": access.is_certain,
        "instruction": access.instruction.text,
    }


def _make_occupancy(statics: KernelStatics) -> dict[str, Any] | None:
    """Occupancy of a kernel as JSON; None where the block size is unknown."""
    if statics.occupancy is None or statics.block is None:
        return None
    return {
        **pick(statics.block, "threads=threads_per_block origin=block_known_from dynamic_shared_bytes"),
        **pick(statics.occupancy, "blocks_per_sm warps_per_sm ratio=occupancy_ratio limiters"),
        "next_step": statics.next_step or None,
    }


def _make_finding(finding: StaticFinding, waits: Waits | None) -> dict[str, Any]:
    wait = _find_wait(finding, waits)
    return {
        **pick(finding, "check file line"),
        "inlined_through": [pick(frame, "file line function") for frame in finding.chain or ()],
        "message": finding.message,
        "remedy": finding.remedy or None,
        **pick(finding, "certainty loop_depth weight"),
        "stalled": None if wait is None else pick(wait, "ratio is_simulated"),
        "instructions": [pick(one, "function pc_offset text") for one in finding.instructions],
    }
