"""Prediction of a report's launch beside its measurement: :func:`predict_measured`. A report tells all of a launch but its arguments."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.embedded_ptx import EmbeddedPtx, find_ptx_lines
from gpa_lsp.code.binary.opcodes import Access, MemorySpace
from gpa_lsp.code.ptx.model import PtxModule, Space
from gpa_lsp.code.ptx.static_instructions import list_reachable
from gpa_lsp.diagnosis.analyses.answers import Answer, Finding, Table, Weight, list_columns
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Counts, Sampling, SamplingKind, TraceSettings, TraceSink
from gpa_lsp.execution.prediction.launched_code import MeasuredPlace
from gpa_lsp.execution.prediction.model import (
    AGREED_RATIO,
    ComparedAccess,
    CountComparison,
    CountPair,
    KernelPrediction,
    PredictionSettings,
)
from gpa_lsp.execution.prediction.predict_launch import LaunchSubject, predict_launch
from gpa_lsp.execution.traces.access_sums import RequestCollector, RequestCounts
from gpa_lsp.execution.traces.model import AccessGroupKind, find_group_kind
from gpa_lsp.execution.volumes.measured_volumes import answer_compared, compare_volumes
from gpa_lsp.foundation.errors import Problem, spare_others
from gpa_lsp.foundation.locations import shorten_paths
from gpa_lsp.foundation.numbers import Cell
from gpa_lsp.foundation.prose import NOTHING, Place, Sentence, count, join, percent, say
from gpa_lsp.gpu.device.products import find_product_of
from gpa_lsp.kernel.dataflow.accesses import count_access_bytes
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.kernel.model import Kernel, KernelRows

_COUNTING_SHARE = 4  # Blocks that are run for counting alone may take this part of what a launch may
_NO_VOLUMES = "the report has no time, or no counters of L2 and DRAM traffic to put beside the predicted volumes (--section MemoryWorkloadAnalysis)"
_IN_PIECES = "wmma."  # Instructions that the hardware executes as several accesses, as which a trace has them


class EmulatedAccess(Struct, frozen=True, kw_only=True):
    """An access instruction of the PTX, in one space."""

    text_line: int  # of the PTX text, from 1
    text: str  # as PTX
    kind: AccessGroupKind  # loads, stores or atomics
    space: Space  # resolved; GENERIC where no lane ever accessed anything
    bytes_per_lane: int  # that one thread accesses at once
    executions: int  # by warps, those in which the guard held for no lane included
    threads: int  # that executed it with their guard true
    sectors: int | None  # of its requests; None for shared memory
    wavefronts: int | None  # of its requests; None for all but shared memory


class EmulatedCounts(Struct, frozen=True, kw_only=True):
    """All accesses of a launch."""

    accesses: tuple[EmulatedAccess, ...]  # in the order of the PTX
    counted_blocks: int  # that were run, each to its end
    grid_blocks: int  # of the launch

    @property
    def factor(self) -> float:
        """Factor that scales the counts to the launch."""
        return self.grid_blocks / self.counted_blocks


def count_launch(
    subject: LaunchSubject, prediction: KernelPrediction, collector: RequestCollector, settings: PredictionSettings
) -> EmulatedCounts | None:
    """Count each access over all blocks where the prediction ran them, else over some that are spread over the grid.

    Returns:
        The counts; None where not every block that was begun ran to its end, or not all of it was traced.
    """
    execution = prediction.execution
    counts, blocks = prediction.counts, execution.executed_blocks
    if counts is None or not (execution.is_complete and collector.is_complete and blocks == execution.grid_blocks):
        per_block = max(1.0, execution.warp_instructions / max(1, blocks))
        most = max(1, int(settings.traced_warp_instructions / _COUNTING_SHARE / per_block))
        for number in dict.fromkeys((min(most, execution.grid_blocks), 1)):  # of blocks that loop long, one is enough
            collector = RequestCollector()
            run = emulate(
                subject.module,
                subject.launch,
                budget=settings.budget,
                sampling=Sampling(kind=SamplingKind.SPREAD, count=number),  # blocks at the ends do other work
                trace=TraceSettings(branches=False),
                sink=collector,
                check_races=False,
            )
            counts, blocks = run.counts, len(run.executed_blocks)
            if run.is_complete and collector.is_complete and blocks:
                break
        else:
            return None
    return EmulatedCounts(
        accesses=tuple(_list_accesses(subject.module, subject.kernel, counts, collector)),
        counted_blocks=blocks,
        grid_blocks=execution.grid_blocks,
    )


def _list_accesses(
    module: PtxModule, kernel: str, counts: Counts, collector: RequestCollector
) -> Iterator[EmulatedAccess]:
    every = collector.finish()
    lines = [one.text_line for function in list_reachable(module, kernel) for one in function.instructions]
    for static, text_line in zip(collector.instructions, lines, strict=False):  # behind them, ways to called functions
        if static.kind is None:
            continue
        executions, threads = int(counts.warp_executions[static.index]), int(counts.lane_executions[static.index])
        spaces = every.get(static.index) or {static.space: RequestCounts()}
        is_split = static.text.startswith(_IN_PIECES) or len(spaces) > 1
        for space, one in spaces.items():
            yield EmulatedAccess(
                text_line=text_line,
                text=static.text,
                kind=find_group_kind(static),
                space=space,
                bytes_per_lane=static.bytes_per_lane,
                executions=one.requests if is_split else executions,
                threads=one.lanes if is_split else threads,
                sectors=None if space is Space.SHARED else one.sectors,
                wavefronts=one.wavefronts if space is Space.SHARED else None,
            )


# Comparison of emulated with measured counts: :func:`compare_counts`.
#
# A line of the PTX becomes any number of machine instructions, whose counts are added: loops are unrolled and functions
# inlined. Of accesses that were joined to a wider one only executions are compared. Machine instructions that the PTX does not have (spills,
# parameters that are copied) are counted, not compared.

_KINDS = {
    Access.LOAD: AccessGroupKind.LOADS,
    Access.COPY: AccessGroupKind.LOADS,
    Access.STORE: AccessGroupKind.STORES,
    Access.ATOMIC: AccessGroupKind.ATOMICS,
    Access.REDUCTION: AccessGroupKind.ATOMICS,
}
_SPACES = {
    MemorySpace.GLOBAL: Space.GLOBAL,
    MemorySpace.GENERIC: Space.GENERIC,
    MemorySpace.SHARED: Space.SHARED,
    MemorySpace.LOCAL: Space.LOCAL,
}
_SECTORS = {Space.GLOBAL: "global_sectors", Space.LOCAL: "local_sectors"}
_WAVEFRONTS = {Space.SHARED: "shared_wavefronts"}
_MATRICES = ("ldmatrix", "stmatrix")  # Accesses whose width is that of a row, and not of registers
_THREADS = "thread_executions_true"

_Key = tuple[int, AccessGroupKind, Space]  # Line of the PTX section, kind and space


def compare_counts(kernel: Kernel, unit: EmbeddedPtx, emulated: EmulatedCounts) -> CountComparison:
    """Each access of the PTX that became machine instructions, with both counts."""
    of_ptx: dict[_Key, list[EmulatedAccess]] = {}
    for access in emulated.accesses:
        of_ptx.setdefault((unit.kept_lines[access.text_line - 1], access.kind, access.space), []).append(access)
    rows: dict[_Key, list[int]] = {}
    added = unmapped = 0
    spaces: dict[tuple[int, AccessGroupKind], list[Space]] = {}
    for line, kind, space in of_ptx:
        spaces.setdefault((line, kind), []).append(space)
    for row, machine in _list_machine_accesses(kernel, unit):
        key = _find_key(machine, spaces)
        if key is not None:
            rows.setdefault(key, []).append(row)
        elif machine[0]:
            added += 1
        else:
            unmapped += 1
    joined = _Joined(rows=kernel.rows, factor=emulated.factor)
    ordered = sorted(rows, key=lambda key: (key[0], key[1].value, int(key[2])))
    return CountComparison(
        launch=kernel.launches[0].index,
        accesses=tuple(joined.compare(key, of_ptx[key], rows[key]) for key in ordered),
        counted_blocks=emulated.counted_blocks,
        grid_blocks=emulated.grid_blocks,
        added=added,
        merged=sum(any(one.executions for one in of_ptx[key]) for key in of_ptx.keys() - rows.keys()),
        unmapped=unmapped,
    )


def _list_machine_accesses(kernel: Kernel, unit: EmbeddedPtx) -> Iterator[tuple[int, _Key]]:
    """Row, and line (0 for none), kind and space of each machine instruction that accesses memory."""
    rows = kernel.rows
    for number, function in enumerate(kernel.functions):
        if kernel.cubin is None or function.name not in kernel.cubin.functions:
            continue
        lines = find_ptx_lines(kernel.cubin, function.name, unit)
        first = int(rows.first_rows[number])
        for index, line in enumerate(lines[: len(function.pc_offsets)].tolist()):
            opcode = rows.opcode(first + index)
            if opcode.access in _KINDS and opcode.memory in _SPACES:
                yield first + index, (line, _KINDS[opcode.access], _SPACES[opcode.memory])


def _find_key(machine: _Key, spaces: Mapping[tuple[int, AccessGroupKind], list[Space]]) -> _Key | None:
    """The access a machine instruction was made of: on the same line, of the same kind, and to the same space where both say one."""
    line, kind, own = machine
    of_line = spaces.get((line, kind), [])
    if own is Space.GENERIC:
        return (line, kind, of_line[0]) if len(of_line) == 1 else None
    space = next((one for one in (own, Space.GENERIC) if one in of_line), None)
    return None if space is None else (line, kind, space)


class _Joined(Struct, frozen=True, kw_only=True):
    """Sums over rows."""

    rows: KernelRows  # of the kernel
    factor: float  # of emulated counts

    def compare(self, key: _Key, accesses: list[EmulatedAccess], numbers: list[int]) -> ComparedAccess:
        line, kind, space = key
        place = next((place for place in map(self.rows.place, numbers) if place is not None), None)
        # Neighbouring loads become one that is wider: it does for several what this one is asked to do alone.
        widths = {count_access_bytes(self.rows.mnemonic(row)) for row in numbers}
        is_as_wide = accesses[0].text.startswith(_MATRICES) or widths <= {one.bytes_per_lane for one in accesses}
        sectors = sum(one.sectors or 0 for one in accesses)
        wavefronts = sum(one.wavefronts or 0 for one in accesses)
        counted = self.rows.executions[numbers]
        return ComparedAccess(
            ptx=accesses[0].text,
            ptx_line=line,
            file=None if place is None else place.file,
            line=None if place is None else place.line,
            kind=kind,
            space=space,
            instructions=tuple((self.rows.function_of(row).name, int(self.rows.pc_offsets[row])) for row in numbers),
            executions=CountPair(
                measured=float(counted[counted > 0].sum()),
                emulated=sum(one.executions for one in accesses) * self.factor,
            ),
            threads=self._pair(_THREADS, numbers, sum(one.threads for one in accesses)),
            sectors=self._pair(_SECTORS.get(space) if is_as_wide else None, numbers, sectors),
            wavefronts=self._pair(_WAVEFRONTS.get(space) if is_as_wide else None, numbers, wavefronts),
        )

    def _pair(self, name: str | None, numbers: list[int], emulated: int) -> CountPair | None:
        column = None if name is None else self.rows.counter(name)
        if column is None:
            return None
        known, threads = column[numbers], self.rows.counter(_THREADS)
        is_known = known >= 0
        if name != _THREADS and threads is not None:
            # No thread accesses nothing: the profiler counted neither sectors nor wavefronts of some guarded copies.
            is_known &= (known > 0) | (threads[numbers] <= 0)
        return CountPair(measured=float(known.sum()), emulated=emulated * self.factor) if is_known.all() else None


def predict_measured(
    subject: LaunchSubject, measured: MeasuredPlace, settings: PredictionSettings, sinks: Iterable[TraceSink]
) -> KernelPrediction:
    """Predict a launch of a report, and compare the counts of each access with the measured ones.

    Args:
        settings: without a GPU in it, for the GPU of the measurement.
    """
    launch, collector = measured.launch.launch, RequestCollector()
    product = find_product_of(launch.device)
    if settings.machine is None and product is not None:
        settings = replace(settings, machine=product.name)
    subject = replace(subject, compute_capability=launch.device.compute_capability or subject.compute_capability)
    predicted = predict_launch(subject, settings, sinks=(*sinks, collector))
    problems: list[Problem] = []
    with spare_others("laying it over what was measured", problems, kernel=subject.kernel):
        compared = _compare(measured, subject, predicted, collector, settings)
        moved = None
        if predicted.volumes is not None and product is not None and predicted.machine == product.name:
            moved = compare_volumes(predicted.volumes, launch)
            if moved is None:
                problems.append(Problem.note(_NO_VOLUMES))
        beside = (answer_measured(compared), *(() if moved is None else (answer_compared(moved),)))
        answers = (*predicted.answers[:1], *beside, *predicted.answers[1:])  # what went wrong stands first
        predicted = replace(predicted, measured=compared, measured_volumes=moved, answers=answers)
    return replace(predicted, problems=(*predicted.problems, *problems))


def _compare(
    measured: MeasuredPlace,
    subject: LaunchSubject,
    predicted: KernelPrediction,
    collector: RequestCollector,
    settings: PredictionSettings,
) -> CountComparison:
    index = measured.launch.launch.index
    kernels, problems = join_profile(measured.profile, kernel_filter=lambda launch: launch.index == index)
    if not kernels:
        return CountComparison(launch=index, why=next((one.message for one in problems), "its code cannot be read"))
    if not (kernels[0].rows.executions >= 0).any():
        why = "the report does not count executions per instruction; record it with --set full, or --section SourceCounters"
        return CountComparison(launch=index, why=why)
    emulated = count_launch(subject, predicted, collector, settings)
    if emulated is None:
        why = "the emulation did not come to an end; give it more time (--seconds) or memory (--memory)"
        return CountComparison(launch=index, why=why)
    return compare_counts(kernels[0], measured.launch.code.unit, emulated)


NAME = "measured"
_TITLE = "Measured beside emulated"
_MOST_FINDINGS = 5
_COUNTS = ("executions", "sectors", "wavefronts")
_COLUMNS = list_columns("line", "accesses", *(f"{name} [count]" for one in _COUNTS for name in (one, "emulated")), "")


class _LineCounts(Struct, frozen=True, kw_only=True):
    """The accesses of one kind and space at one line."""

    members: tuple[ComparedAccess, ...]

    def sum_of(self, name: str) -> CountPair | None:
        """One count over all members that have it."""
        pairs = [pair for pair in (one.pairs[name] for one in self.members) if pair is not None]
        if not pairs:
            return None
        return CountPair(measured=sum(one.measured for one in pairs), emulated=sum(one.emulated for one in pairs))

    @property
    def differing(self) -> tuple[ComparedAccess, ...]:
        return tuple(one for one in self.members if not one.agrees)


def answer_measured(compared: CountComparison) -> Answer:
    """A table of lines, those first whose counts differ, and a finding for each of these."""
    accesses = compared.accesses
    if compared.why or not accesses:
        missing = say("No machine instruction that accesses memory has a line of the PTX.")
        summary = say("Nothing was compared: {why}.", why=compared.why) if compared.why else missing
        return Answer(analysis=NAME, title=_TITLE, summary=summary, is_known=False)
    members: dict[tuple[object, ...], list[ComparedAccess]] = {}
    for one in accesses:
        members.setdefault((one.file or "", one.line or one.ptx_line, one.space, one.kind), []).append(one)
    lines = [_LineCounts(members=tuple(members[key])) for key in sorted(members, key=str)]
    files = shorten_paths({one.file for one in accesses if one.file is not None})
    ordered = sorted(lines, key=lambda one: not one.differing)
    findings = [_explain(one, files) for one in ordered if one.differing]
    return Answer(
        analysis=NAME,
        title=_TITLE,
        summary=_summarize(compared),
        findings=tuple(findings[:_MOST_FINDINGS]),
        tables=(
            Table(
                title="By line",
                columns=_COLUMNS,
                rows=tuple(_write_row(one, files) for one in ordered),
                note=_describe_rest(compared),
            ),
        ),
    )


def _summarize(compared: CountComparison) -> Sentence:
    accesses = compared.accesses
    executed = sum(one.is_executed_alike for one in accesses)
    parts = [
        say(
            "{executed} of {all} were executed as often as measured",
            executed=count(executed),
            all=count(len(accesses), "memory instruction"),
        )
    ]
    for name in ("sectors", "wavefronts"):
        pairs = [pair for pair in (one.pairs[name] for one in accesses) if pair is not None]
        if pairs:
            agreed = sum(pair.agrees for pair in pairs)
            parts.append(
                say("{name} agree in {agreed} of {all}", name=name, agreed=count(agreed), all=count(len(pairs)))
            )
    return say("{parts}.", parts=join(parts, ", "))


def _describe_rest(compared: CountComparison) -> Sentence:
    parts = [say("Counts agree that differ by no more than {ratio}.", ratio=percent(AGREED_RATIO))]
    instructions = sum(len(one.instructions) for one in compared.accesses)
    if instructions > len(compared.accesses):
        parts.append(
            say(
                "The {all} of the PTX are {instructions} of the machine code, which repeats them where loops were unrolled.",
                all=count(len(compared.accesses), "memory instruction"),
                instructions=count(instructions),
            )
        )
    if compared.counted_blocks < compared.grid_blocks:
        parts.append(
            say(
                "Emulated counts are those of {counted} of {all}, scaled to all.",
                counted=count(compared.counted_blocks),
                all=count(compared.grid_blocks, "block"),
            )
        )
    if compared.added:
        parts.append(
            say(
                "{added} that the PTX does not have (spills, copies of parameters) were not compared.",
                added=count(compared.added, "memory instruction"),
            )
        )
    if compared.unmapped:
        parts.append(say("{count} without a line of the PTX.", count=count(compared.unmapped, "memory instruction")))
    if compared.merged:
        parts.append(
            say("{merged} of the PTX became part of others.", merged=count(compared.merged, "memory instruction"))
        )
    return join(parts)


def _place(one: ComparedAccess, files: dict[str, str]) -> Sentence:
    if one.file is None or one.line is None:
        return say("PTX line {line}", line=count(one.ptx_line))
    return say("{place}", place=Place(file=one.file, line=one.line, shown_file=files[one.file]))


_WORDS = {
    AccessGroupKind.LOADS: "loads from {} memory",
    AccessGroupKind.STORES: "stores to {} memory",
    AccessGroupKind.ATOMICS: "atomics on {} memory",
}


def _name_accesses(one: ComparedAccess) -> str:
    return _WORDS[one.kind].format(one.space.name.lower() if one.space is not Space.GENERIC else "any")


def _explain(line: _LineCounts, files: dict[str, str]) -> Finding:
    first = line.differing[0]
    parts = []
    for name in _COUNTS:
        pair = line.sum_of(name)
        if pair is not None and not pair.agrees:
            parts.append(
                say(
                    "{measured} measured, {emulated} emulated",
                    measured=count(pair.measured, name.removesuffix("s")),
                    emulated=count(pair.emulated),
                )
            )
    what = join(parts, "; ") if parts else say("its instructions differ one by one")
    remedy = NOTHING if first.is_executed_alike else say("Are the arguments those of the measured launch?")
    text = say("{place}, {accesses}: {what}.", place=_place(first, files), accesses=_name_accesses(first), what=what)
    return Finding(text=text, weight=Weight.HIGH, remedy=remedy)


def _write_row(line: _LineCounts, files: dict[str, str]) -> tuple[Cell, ...]:
    cells: list[Cell] = [str(_place(line.members[0], files)), _name_accesses(line.members[0])]
    for name in _COUNTS:
        pair = line.sum_of(name)
        cells += [None, None] if pair is None else [pair.measured, pair.emulated]
    return (*cells, "differs" if line.differing else "")
