"""A compiled kernel as a page: its resources, its occupancy over the size of a block, and what its code says line by line."""

from collections import Counter
from collections.abc import Iterator, Sequence

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.symbolic_accesses.model import SymbolicAccess
from gpa_lsp.diagnosis.advice.find_statics import KernelFindings
from gpa_lsp.diagnosis.advice.static_model import StaticFinding
from gpa_lsp.diagnosis.advice.warp_facts import WarpFacts, describe_access, describe_cost, describe_pattern
from gpa_lsp.diagnosis.analyses.static.model import KernelStatics, describe_block, describe_occupancy
from gpa_lsp.document.markdown_text import begin_paragraph, mark_code, write_cell
from gpa_lsp.foundation.numbers import format_bytes, format_count, format_count_of, format_percent
from gpa_lsp.foundation.ownership import find_frame_in
from gpa_lsp.foundation.prose import NOTHING, Sentence, join
from gpa_lsp.foundation.visible_text import make_one_line
from gpa_lsp.kernel.names import demangle, shorten_name

_MOST_FINDINGS = 50
_MOST_INSTRUCTIONS = 4
_MOST_REQUESTS = 200


def render_statics_markdown(kernel: KernelFindings, compiler: str) -> str:
    """The page.

    Args:
        kernel: what its code says.
        compiler: name and version of what compiled it; empty when unknown.
    """
    statics = kernel.statics
    return "\n".join(
        (
            f"# {make_one_line(shorten_name(demangle(statics.mangled_name)))}",
            "",
            _introduce(statics, compiler),
            "",
            *_tabulate_resources(statics),
            "",
            *_tabulate_blocks(statics),
            *_list_findings(kernel.findings),
            *_tabulate_requests(kernel),
        )
    )


def _introduce(statics: KernelStatics, compiler: str) -> str:
    capability = statics.compute_capability
    target = f" for compute capability {capability[0]}.{capability[1]}" if capability is not None else ""
    by = f" by {make_one_line(compiler)}" if compiler else ""
    return f"Compiled{by}{target}. **Static**: derived from the code alone; nothing was measured."


def _tabulate_resources(statics: KernelStatics) -> Iterator[str]:
    rows = [
        ("registers per thread", _show(statics.registers)),
        ("register limit of the compiler", _show(statics.register_cap)),
        ("static shared memory per block", format_bytes(statics.shared_static_bytes)),
        ("local memory per thread", "unknown" if statics.local_bytes is None else format_bytes(statics.local_bytes)),
        ("spilled registers per thread", format_bytes(statics.spill_bytes)),
        ("barriers", _show(statics.barriers)),
    ]
    yield "| resource | |"
    yield "|---|---:|"
    yield from (f"| {name} | {value} |" for name, value in rows)


def _show(number: int | None) -> str:
    return "unknown" if number is None else format_count(number)


def _tabulate_blocks(statics: KernelStatics) -> Iterator[str]:
    if not statics.by_block:
        yield "The occupancy is unknown: we have no table of this architecture."
        return
    if statics.block is None:
        yield "The block size is unknown; a launch with constant dimensions, launch bounds or a launch description would tell."
    else:
        yield f"{describe_occupancy(statics)} for {describe_block(statics.block)}. {statics.next_step}".strip()
    yield ""
    yield "| threads per block | blocks per SM | warps per SM | occupancy | limited by |"
    yield "|---:|---:|---:|---:|---|"
    for threads, found in statics.by_block:
        mark = " ◀" if statics.block is not None and threads == statics.block.threads else ""
        limits = ", ".join(limit.value for limit in found.limiters)
        yield (
            f"| {format_count(threads)}{mark} | {found.blocks_per_sm} | {found.warps_per_sm} | {format_percent(found.ratio)} | {limits} |"
        )


def _tabulate_requests(kernel: KernelFindings) -> Iterator[str]:
    """Each access of global and shared memory by line, as its addresses tell."""
    facts, place = kernel.warps, kernel.place
    if facts is None or place is None:
        return
    counts: Counter[tuple[int, str]] = Counter()
    for access in facts.found.accesses:
        frame = find_frame_in(access.instruction.chain, place.file.__eq__)
        if frame is not None:
            counts[frame.line, " | ".join(write_cell(one) for one in _describe_request(facts, access))] += 1
    if not counts:
        return
    yield ""
    yield f"## Requests of a warp{facts.assumption}"
    yield ""
    yield "| line | access | threads of a warp | cost | instructions |"
    yield "|---:|---|---|---|---:|"
    for (line, words), number in sorted(counts.items())[:_MOST_REQUESTS]:
        yield f"| {line} | {words} | {format_count(number)} |"
    if len(counts) > _MOST_REQUESTS:
        yield ""
        yield f"{format_count(len(counts) - _MOST_REQUESTS)} more not shown."


def _describe_request(facts: WarpFacts, access: SymbolicAccess) -> tuple[Sentence, Sentence, Sentence]:
    noun = "wavefront" if access.space == Space.SHARED else "sector"
    cost = NOTHING if access.cost is None else join((describe_cost(access, noun), facts.describe_condition(access)), "")
    return describe_access(facts, access, begins=""), describe_pattern(facts, access), cost


def _list_findings(findings: Sequence[StaticFinding]) -> Iterator[str]:
    if not findings:
        return
    yield ""
    yield "## Findings in the code"
    for finding in findings[:_MOST_FINDINGS]:
        line = f"line {finding.line}: " if finding.line is not None else ""
        yield ""
        says = join((finding.message, finding.remedy))
        yield f"* {begin_paragraph(f'{line}{says} *({finding.check}, {finding.certainty.value})*')}"
        for one in finding.instructions[:_MOST_INSTRUCTIONS]:
            yield f"  * {mark_code(f'{one.pc_offset:#06x}  {one.text}')}"
    if len(findings) > _MOST_FINDINGS:
        yield ""
        yield f"{format_count_of(len(findings) - _MOST_FINDINGS, 'more finding')} not shown."
