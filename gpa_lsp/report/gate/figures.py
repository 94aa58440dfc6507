"""What is known of a kernel → :class:`~gpa_lsp.report.gate.model.GateKernel`: from its report, from its code, from its emulation."""

from collections import Counter
from collections.abc import Iterable, Iterator

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.symbolic_accesses.model import SymbolicAccess
from gpa_lsp.diagnosis.advice.find_statics import KernelFindings
from gpa_lsp.diagnosis.advice.static_model import LOOP_WEIGHT
from gpa_lsp.diagnosis.analyses.mix import WorkClass, classify_mnemonic
from gpa_lsp.execution.prediction.model import KernelPrediction
from gpa_lsp.foundation.locations import SourceLine
from gpa_lsp.foundation.ownership import choose_frame
from gpa_lsp.report.compare import measure_work
from gpa_lsp.report.differences import Trait, compare_traits
from gpa_lsp.report.gate.model import TRAITS, Figure, GateKernel, Metric, Origin
from gpa_lsp.report.kernel_lines import find_body
from gpa_lsp.report.model import KernelReport

Figures = dict[tuple[Metric, Origin], Figure]


def describe_kernel(
    kernel: KernelReport, code: KernelFindings | None = None, predictions: Iterable[KernelPrediction] = ()
) -> GateKernel:
    """Everything a gate can judge of a kernel.

    Args:
        kernel: measured, or code without a profile.
        code: what its code says; None where only the report is known.
        predictions: its emulated launches.
    """
    body = find_body(kernel)
    first = None if body is None else SourceLine(file=body[0], line=body[1][0])
    figures = dict(_list_reported(kernel, first))
    if code is not None:
        figures.update(_list_static(kernel, code, first))
    figures.update(_list_emulated(tuple(predictions), first))
    is_measured = any(launch.failure is None for launch in kernel.launches)
    return GateKernel(
        mangled_name=kernel.mangled_name,
        name=kernel.name,
        figures=figures,
        work=measure_work(kernel) if is_measured else None,
        body=first,
        report=kernel,
    )


def _list_reported(kernel: KernelReport, first: SourceLine | None) -> Iterator[tuple[tuple[Metric, Origin], Figure]]:
    """What a report says; of code without a profile only what stands in it."""
    traits = compare_traits(kernel, kernel)
    lines = {Metric.LOCAL_ACCESSES: _find_local_line(kernel), Metric.SECTORS: _find_sector_line(kernel)}
    for metric, trait in TRAITS.items():
        found = traits.get(trait)
        if found is not None and isinstance(found.after, int | float):
            told = Origin.SIMULATED if kernel.is_simulated else Origin.MEASURED
            origin = Origin.STATIC if found.is_static or not kernel.launches else told
            yield (metric, origin), Figure(value=float(found.after), line=lines.get(metric) or first)
    local = traits.get(Trait.LOCAL_ACCESSES)
    if local is not None and not local.after:
        yield (Metric.SPILLS, Origin.STATIC), Figure(value=0.0, line=first)  # what never goes to local memory


def _list_static(
    kernel: KernelReport, code: KernelFindings, first: SourceLine | None
) -> Iterator[tuple[tuple[Metric, Origin], Figure]]:
    statics = code.statics
    if statics.registers is not None:
        yield (Metric.REGISTERS, Origin.STATIC), Figure(value=statics.registers, line=first)
    if statics.occupancy is not None:
        yield (Metric.OCCUPANCY, Origin.STATIC), Figure(value=statics.occupancy.ratio, line=first)
    yield (Metric.SPILLS, Origin.STATIC), Figure(value=statics.spill_bytes, line=_find_local_line(kernel) or first)
    requests = [] if code.warps is None else code.warps.found.accesses
    costs = [(one, one.cost) for one in requests if one.space is Space.GLOBAL and one.cost is not None]
    if costs:
        worst = max(costs, key=lambda one: one[1] - one[0].ideal)
        mean = sum(cost for _, cost in costs) / len(costs)
        yield (Metric.SECTORS, Origin.STATIC), Figure(value=mean, line=_find_line(worst[0]) or first)


def _find_line(access: SymbolicAccess) -> SourceLine | None:
    frame = next(iter(access.instruction.chain or ()), None)
    return None if frame is None or not frame.line else frame.source_line


def _list_emulated(
    predictions: tuple[KernelPrediction, ...], first: SourceLine | None
) -> Iterator[tuple[tuple[Metric, Origin], Figure]]:
    """Sums over the described launches; instructions only where all blocks ran."""
    if predictions and all(one.execution.is_complete for one in predictions):
        executed = sum(one.execution.warp_instructions for one in predictions) / len(predictions)
        yield (Metric.INSTRUCTIONS, Origin.EMULATED), Figure(value=executed, line=first)
    facts = [fact for one in predictions for fact in one.accesses if fact.space is Space.GLOBAL and not fact.is_nested]
    requests = sum(fact.requests for fact in facts)
    if requests:
        excess: Counter[SourceLine] = Counter()
        for fact in facts:
            lost = (fact.sectors_per_request - fact.ideal_sectors_per_request) * fact.requests
            excess[SourceLine(file=fact.file, line=fact.line)] += lost  # type: ignore[assignment]
        mean = sum(fact.sectors for fact in facts) / requests
        yield (Metric.SECTORS, Origin.EMULATED), Figure(value=mean, line=excess.most_common(1)[0][0])


def _find_local_line(kernel: KernelReport) -> SourceLine | None:
    """The line with most accesses to local memory, as often as they were executed or else by the loops around them."""
    columns = kernel.instructions
    weights: Counter[SourceLine] = Counter()
    for row, text in enumerate(columns.texts):
        words = text.split(maxsplit=2)
        mnemonic = words[1] if text.startswith("@") and len(words) > 1 else next(iter(words), "")
        chain = int(columns.chain_index[row])
        if chain < 0 or not mnemonic or classify_mnemonic(mnemonic) is not WorkClass.LOCAL:
            continue
        executed = int(columns.executions[row])
        weight = executed if executed >= 0 else LOOP_WEIGHT ** int(columns.loop_depths[row])
        weights[choose_frame(columns.chains[chain]).source_line] += weight  # type: ignore[assignment]
    return weights.most_common(1)[0][0] if weights else None


def _find_sector_line(kernel: KernelReport) -> SourceLine | None:
    """The line that requests most sectors more than it needs, as the analysis of memory accesses has it."""
    answer = None if kernel.analyses is None else kernel.analyses.find("memory_access")
    best: tuple[float, str] | None = None
    for table in () if answer is None else answer.tables:
        if table.title != "Global memory, by line":
            continue
        names = [column.name for column in table.columns]
        for cells in table.rows:
            row = dict(zip(names, cells, strict=True))
            accesses, moved, least = row["accesses"], row["sectors per access"], row["at best"]
            if isinstance(accesses, int | float) and isinstance(moved, int | float) and isinstance(least, int | float):
                best = max(best or (0.0, ""), (accesses * (moved - least), str(row["line"])), key=lambda one: one[0])
    file, _, line = ("", "", "") if best is None else best[1].rpartition(":")
    return SourceLine(file=file, line=int(line)) if file and line.isdecimal() and int(line) else None
