"""Question: what does the kernel execute, and on which pipes? Classes of work, pipes, and the mix of the hottest lines."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.analyses.answers import (
    Answer,
    Bar,
    Finding,
    LineMark,
    Missing,
    Table,
    Weight,
    list_columns,
    order_findings,
)
from gpa_lsp.diagnosis.analyses.line_sums import LineIndex, index_lines, mark_lines, rank_lines
from gpa_lsp.diagnosis.analyses.mix import (
    ARITHMETIC,
    CLASSES,
    MEMORY,
    PipeUse,
    WorkClass,
    classify_rows,
    count_classes,
    measure_pipes,
)
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.diagnosis.analyses.subject import Subject, lack
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, count, percent, say
from gpa_lsp.foundation.records import ColumnRecord

_BUSY_ENOUGH = 0.5  # From this use of its pipe on, fewer instructions of a type are time

# Name, sums, products, fused, and the pipes that may execute them
_TYPES = (
    ("FP32", ("FADD", "FADD32I", "FADD2"), ("FMUL", "FMUL32I", "FMUL2"), ("FFMA", "FFMA32I", "FFMA2"), ("fma",)),
    ("FP64", ("DADD",), ("DMUL",), ("DFMA",), ("fp64",)),
    ("FP16", ("HADD2", "HADD2_32I"), ("HMUL2", "HMUL2_32I"), ("HFMA2", "HFMA2_32I"), ("fma", "fp16")),
)


class NonFused(ColumnRecord, frozen=True, kw_only=True):
    """Sums and products of one floating-point type, in executed warp instructions."""

    name: str  # the type
    sums: int  # additions and subtractions
    products: int  # multiplications
    fused: int  # multiply-adds
    is_busy: bool  # the pipe that executes them is busy enough for fewer to matter
    rows: npt.NDArray[np.int64]  # int64[n], the executions of sums and products by instruction

    @property
    def non_fused(self) -> int:
        """Sums and products."""
        return self.sums + self.products

    @property
    def most_savings(self) -> int:
        """Instructions that fusing can save at most: each takes one sum and one product.

        An upper bound: not every product is added to something. Nsight Compute's rule takes half of all sums and products instead, which more
        sums than products (or the other way round) can never reach.
        """
        return min(self.sums, self.products)


def count_non_fused(
    subject: Subject, executions: npt.NDArray[np.int64], uses: tuple[PipeUse, ...], index: LineIndex
) -> tuple[NonFused, ...]:
    """The types that the kernel computes with, and how much of each is fused.

    Where the kernel has lines, code without any (divisions, powers and other routines of the vendor) is left out: the source cannot fuse it.
    """
    has_line = np.array([place is not None for place in index.places], dtype=np.bool_)
    if has_line.any():
        executions = np.where(has_line[index.line_of], executions, 0)
    busy = {use.pipe.name for use in uses if (use.use_ratio or 0.0) >= _BUSY_ENOUGH}
    found = []
    for name, sums, products, fused, pipes in _TYPES:
        is_sum, is_product, is_fused = (_mark(subject, names) for names in (sums, products, fused))
        one = NonFused(
            name=name,
            sums=int(executions[is_sum].sum()),
            products=int(executions[is_product].sum()),
            fused=int(executions[is_fused].sum()),
            is_busy=bool(busy.intersection(pipes)),
            rows=np.where(is_sum | is_product, executions, 0),
        )
        if one.non_fused or one.fused:
            found.append(one)
    return tuple(found)


def _mark(subject: Subject, names: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    return subject.rows.mark_by_opcode(lambda opcode: opcode.name in names)


# From this use on a pipe is busy. Source: above it a pipe is likely to limit, below it seldom does; Nsight Compute's own rules draw the line there
# for its throughputs.
BUSY = 0.6

_MOST_LINES = 3
_MANY_NON_FUSED = 0.1  # From this share of all instructions on, sums and products that are not fused are named
_MANY_CONVERSIONS = 0.03
_MANY_DOUBLES = 0.01
_FEW_FP64 = 0.25  # Warp instructions per cycle and SM below which 64-bit floating point is a sideline of the GPU
_LITTLE_WORK = 0.25  # Below this share of arithmetic in a numeric kernel, the rest is named
_NUMERIC = 0.05  # From this share of arithmetic on, a kernel is taken to be numeric; else integers are its work

_FUSION_REMEDY = say(
    "Write products and sums so that they fuse: {expression} in one expression, {fma}, reassociated polynomials; check that {option} or the "
    "intrinsics {multiply} and {add} do not forbid it.",
    expression=Code(text="a*b + c"),
    fma=Code(text="fma()"),
    option=Code(text="-fmad=false"),
    multiply=Code(text="__fmul_rn"),
    add=Code(text="__fadd_rn"),
)
_CONVERSION_REMEDY = say(
    "Keep values in one type: no integer counters in float expressions, literals with the suffix {f}, narrow types converted once and not at each "
    "use.",
    f=Code(text="f"),
)
_DOUBLE_REMEDY = say(
    "Write literals with the suffix {f} and call the float functions ({sqrtf}, {powf}); use double arithmetic only where it is needed.",
    f=Code(text="f"),
    sqrtf=Code(text="sqrtf"),
    powf=Code(text="powf"),
)
_OVERHEAD_REMEDY = say(
    "Let one index serve several elements: unroll, compute more than one result per thread, advance pointers instead of computing addresses, use "
    "32-bit indices and constant strides."
)


def find_busy_pipes(uses: tuple[PipeUse, ...]) -> list[Finding]:
    """One finding for each busy pipe, or one that names the busiest."""
    known = [use for use in uses if use.use_ratio is not None]
    if not known:
        return []
    busy = [use for use in known if (use.use_ratio or 0.0) >= BUSY]
    if not busy:
        return [Finding(text=say("No pipe is busy: the busiest, {use}.", use=_describe_use(known[0], ",")))]
    return [
        Finding(
            text=say("Pipe {use}.", use=_describe_use(use)),
            weight=Weight.HIGH,
            remedy=say(use.pipe.remedy),
        )
        for use in busy
    ]


def find_non_fused(counts: tuple[NonFused, ...], total: int, index: LineIndex) -> list[Finding]:
    """Types whose sums and products make up many instructions and could still fuse."""
    findings = []
    for one in counts:
        if one.non_fused < _MANY_NON_FUSED * total or one.most_savings == 0:
            continue
        findings.append(
            Finding(
                text=say(
                    "{share} of the {type} sums and products are not fused ({sums}, {products}, {fused} fused). Fusing pairs would save at most "
                    "{saved} ({part} of all). Most are at {lines}.",
                    share=percent(one.non_fused / max(one.non_fused + one.fused, 1)),
                    type=one.name,
                    sums=count(one.sums, "sum"),
                    products=count(one.products, "product"),
                    fused=count(one.fused),
                    saved=count(one.most_savings, "warp instruction"),
                    part=percent(one.most_savings / total),
                    lines=index.list_heaviest(index.sum_by_line(one.rows), _MOST_LINES),
                ),
                weight=Weight.HIGH if one.is_busy else Weight.PLAIN,
                remedy=_FUSION_REMEDY,
            )
        )
    return findings


def find_conversions(
    subject: Subject, executions: npt.NDArray[np.int64], uses: tuple[PipeUse, ...], index: LineIndex, total: int
) -> list[Finding]:
    """Many conversions, and those between float and double, which a literal without its suffix makes."""
    findings = []
    is_conversion = classify_rows(subject) == CLASSES.index(WorkClass.CONVERSION)
    converts = np.where(is_conversion, executions, 0)
    many = int(converts.sum())
    if many >= _MANY_CONVERSIONS * total:
        is_busy = any(use.pipe.name == "xu" and (use.use_ratio or 0.0) >= BUSY for use in uses)
        findings.append(
            Finding(
                text=say(
                    "{share} of the instructions convert between types, most of them at {lines}.",
                    share=percent(many / total),
                    lines=index.list_heaviest(index.sum_by_line(converts), _MOST_LINES),
                ),
                weight=Weight.HIGH if is_busy else Weight.PLAIN,
                remedy=_CONVERSION_REMEDY,
            )
        )
    doubles = np.where(subject.rows.spread_by_mnemonic(_is_float_to_double, unknown=0) > 0, executions, 0)
    if doubles.any():
        findings.append(
            Finding(
                text=say(
                    "{conversions} between float and double at {lines}: typical of a literal such as {literal} in a float expression.",
                    conversions=count(int(doubles.sum()), "conversion"),
                    lines=index.list_heaviest(index.sum_by_line(doubles), _MOST_LINES),
                    literal=Code(text="0.5"),
                ),
                remedy=_DOUBLE_REMEDY,
            )
        )
    return findings


def find_doubles(subject: Subject, classes: Mapping[WorkClass, int], total: int) -> list[Finding]:
    """64-bit floating point on a GPU that has little of it."""
    architecture = subject.architecture
    if architecture is None or classes[WorkClass.FP64] < _MANY_DOUBLES * total:
        return []
    rate = architecture.throughput.fp64_instructions_per_cycle.value
    if not isinstance(rate, (int, float)):
        return []
    per_sm = rate * architecture.sm.sub_partitions_per_sm.value
    if per_sm >= _FEW_FP64:
        return []
    return [
        Finding(
            text=say(
                "{share} of the instructions are 64-bit floating point, and an SM of this GPU does one such warp instruction every {interval}.",
                share=percent(classes[WorkClass.FP64] / total),
                interval=count(1 / per_sm, "cycle"),
            ),
            weight=Weight.HIGH if classes[WorkClass.FP64] >= _MANY_NON_FUSED * total else Weight.PLAIN,
            remedy=_DOUBLE_REMEDY,
        )
    ]


def find_overhead(classes: Mapping[WorkClass, int], total: int) -> list[Finding]:
    """Find a numeric kernel with little arithmetic, and name the rest."""
    arithmetic = sum(classes[one] for one in ARITHMETIC)
    if classes[WorkClass.TENSOR] >= _NUMERIC * total:
        return []  # one tensor instruction does the work of hundreds; its share says nothing
    if not _NUMERIC * total <= arithmetic < _LITTLE_WORK * total:
        return []
    memory = sum(classes[one] for one in MEMORY)
    addressing = classes[WorkClass.ADDRESS]
    rest = total - arithmetic - memory
    return [
        Finding(
            text=say(
                "{arithmetic} of the instructions are floating-point arithmetic and {memory} access memory; the other {rest} are integers, addresses "
                "({addressing}), moves and control flow.",
                arithmetic=percent(arithmetic / total),
                memory=percent(memory / total),
                rest=percent(rest / total),
                addressing=percent(addressing / total),
            ),
            remedy=_OVERHEAD_REMEDY,
        )
    ]


def _describe_use(use: PipeUse, stop: str = "") -> Sentence:
    """``ALU (integer additions …) is at 80 % of its rate while the SMs are active (counted)``; ``stop`` stands before the verb."""
    return say(
        "{pipe} ({executes}){stop} is at {share} of its rate while the SMs are active ({how})",
        pipe=use.pipe.title,
        executes=use.pipe.says,
        stop=stop,
        share=percent(use.use_ratio or 0.0),
        how="counted" if use.counted_ratio is not None else "computed from executions",
    )


def _is_float_to_double(mnemonic: str) -> int:
    name, *modifiers = mnemonic.split(".")
    return int(name == "F2F" and {"F32", "F64"} <= set(modifiers))


MOST_ROWS = 10  # Lines a table shows

_LEAST_BAR = 0.005  # Smaller classes are shown together

# Columns of the table by line; every class is in one of them
_GROUPS: tuple[tuple[str, tuple[WorkClass, ...]], ...] = (
    ("floating point, tensor", ARITHMETIC),
    ("integer", (WorkClass.INTEGER,)),
    ("addresses", (WorkClass.ADDRESS,)),
    ("memory", MEMORY),
    ("conversions", (WorkClass.CONVERSION,)),
    ("moves", (WorkClass.MOVE, WorkClass.UNIFORM, WorkClass.EXCHANGE)),
    ("control, barriers", (WorkClass.CONTROL, WorkClass.BARRIER, WorkClass.OTHER)),
)


def build_bars(classes: Mapping[WorkClass, int]) -> tuple[Bar, ...]:
    """Classes as parts of all executed instructions, largest first; the small ones together at the end."""
    total = sum(classes.values())
    if total == 0:
        return ()
    large = sorted(
        ((one.value, executed) for one, executed in classes.items() if executed >= _LEAST_BAR * total),
        key=lambda item: -item[1],
    )
    rest = total - sum(executed for _, executed in large)
    shown = [*large, *([("all others", rest)] if rest else [])]
    return tuple(
        Bar(label=label, ratio=executed / total, words=say("{executed}", executed=count(executed)))
        for label, executed in shown
    )


def build_pipe_table(uses: tuple[PipeUse, ...], total: int | None) -> Table:
    """Tabulate the use of each pipe."""
    return Table(
        title="Pipes",
        columns=list_columns(
            "pipe | executes | instructions [count] | share [ratio] | use, counted [ratio] | use, computed [ratio]"
        ),
        rows=tuple(
            (
                use.pipe.title,
                use.pipe.says,
                use.instructions,
                use.instructions / total if use.instructions is not None and total else None,
                use.counted_ratio,
                use.computed_ratio,
            )
            for use in uses
        ),
        note=say(
            "Use is of the pipe's rate while the SMs are active (over the whole kernel where only that was counted). Computed use takes one "
            "issue slot per instruction; some take more."
        ),
    )


def build_line_table(
    classes: npt.NDArray[np.int64],
    executions: npt.NDArray[np.int64],
    samples: npt.NDArray[np.int64],
    index: LineIndex,
) -> Table:
    """Tabulate the work of the hottest lines, in shares of their instructions.

    Args:
        classes: int64[n], numbers in ``CLASSES``; -1 unknown.
        executions: int64[n].
        samples: int64[n], which decide what is hot; executions do where there are none.
    """
    executed = index.sum_by_line(executions)
    heat = index.sum_by_line(samples if samples.any() else executions)
    groups = [(name, [CLASSES.index(one) for one in members]) for name, members in _GROUPS]
    by_group = [index.sum_by_line(np.where(np.isin(classes, members), executions, 0)) for _, members in groups]
    rows: list[tuple[Cell, ...]] = []
    for line in rank_lines(np.where(executed > 0, heat, 0.0), MOST_ROWS):
        shares = [float(sums[line] / executed[line]) for sums in by_group]
        rows.append((index.write_line(line), round(float(heat[line])), round(float(executed[line])), *shares))
    hot = "samples [samples]" if samples.any() else "executions [count]"
    return Table(
        title="What the hottest lines execute",
        columns=list_columns("line", hot, "warp instructions [count]", *(f"{name} [ratio]" for name, _ in groups)),
        rows=tuple(rows),
    )


def build_opcode_table(counts: Mapping[str, int], total: int) -> Table:
    """The opcodes executed most."""
    largest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_ROWS]
    return Table(
        title="Opcodes",
        columns=list_columns("opcode | warp instructions [count] | share [ratio]"),
        rows=tuple((name, executed, executed / total) for name, executed in largest if executed > 0),
    )


_SECTION = "SourceCounters"
_PIPES_SECTION = "ComputeWorkloadAnalysis"
_MOST_MARKS = 50  # Every line executes something; the ones that execute most are enough


def _answer(subject: Subject) -> Answer:
    executions = subject.read_executions()
    uses = measure_pipes(subject, executions)
    classes = classify_rows(subject)
    has_code = bool((classes >= 0).any())
    missing = _list_missing(subject, uses, executions, has_code=has_code)
    if executions is None or not has_code or not executions.any():
        return Answer(
            summary=say("Unknown: which instructions the kernel executes."),
            findings=tuple(find_busy_pipes(uses)),
            tables=(build_pipe_table(uses, None),),
            missing=missing,
            is_known=bool(uses),
        )
    index = index_lines(subject)
    counts = count_classes(classes, executions)
    total = sum(counts.values())
    findings = [
        *find_busy_pipes(uses),
        *find_non_fused(count_non_fused(subject, executions, uses, index), total, index),
        *find_doubles(subject, counts, total),
        *find_conversions(subject, executions, uses, index, total),
        *find_overhead(counts, total),
    ]
    return Answer(
        summary=_summarise(counts, total, uses),
        findings=order_findings(findings),
        bars=build_bars(counts),
        tables=(
            build_pipe_table(uses, total),
            build_line_table(classes, executions, subject.rows.all_samples.sum(axis=1), index),
            build_opcode_table(count_opcodes(subject, executions), total),
        ),
        marks=_mark_executions(subject, executions, index, total),
        missing=missing,
    )


def count_opcodes(subject: Subject, executions: npt.NDArray[np.int64]) -> dict[str, int]:
    """Executed warp instructions by opcode without modifiers, over all launches; only of disassembled code.

    This is what the profiler calls ``sass__inst_executed_per_opcode``.
    """
    counts: dict[str, int] = {}
    known = subject.rows.mnemonic_index >= 0
    opcodes = subject.rows.opcodes
    sums = np.bincount(subject.rows.mnemonic_index[known], weights=executions[known], minlength=len(opcodes))
    for opcode, executed in zip(opcodes, sums, strict=True):
        counts[opcode.name] = counts.get(opcode.name, 0) + int(executed)
    return counts


def _summarise(counts: dict[WorkClass, int], total: int, uses: tuple[PipeUse, ...]) -> Sentence:
    known = [use for use in uses if use.use_ratio is not None]
    busiest = NOTHING
    if known:
        share = percent(known[0].use_ratio)
        busiest = say("; the busiest pipe is {pipe} at {share}", pipe=known[0].pipe.title, share=share)
    return say(
        "Of {total} {arithmetic} are floating-point, tensor and special-function arithmetic, {integer} integers and addresses, {memory} memory "
        "accesses{busiest}.",
        total=count(total, "warp instruction"),
        arithmetic=percent(sum(counts[one] for one in ARITHMETIC) / total),
        integer=percent((counts[WorkClass.INTEGER] + counts[WorkClass.ADDRESS]) / total),
        memory=percent(sum(counts[one] for one in MEMORY) / total),
        busiest=busiest,
    )


def _mark_executions(
    subject: Subject, executions: npt.NDArray[np.int64], index: LineIndex, total: int
) -> tuple[LineMark, ...]:
    executed = index.sum_by_line(executions)
    return mark_lines(
        subject,
        index,
        executions,
        measure="warp instructions",
        quantity=Quantity.COUNT,
        describe=lambda line: say("{share} of the kernel's instructions", share=percent(executed[line] / total)),
        most=_MOST_MARKS,
    )


def _list_missing(
    subject: Subject, uses: tuple[PipeUse, ...], executions: npt.NDArray[np.int64] | None, *, has_code: bool
) -> tuple[Missing, ...]:
    missing = []
    if executions is None:
        missing.append(lack("how often each instruction is executed", "inst_executed", section=_SECTION))
    elif not executions.any():
        missing.append(
            Missing(what="what the kernel executes", why=say("the profiler counted no execution of any instruction"))
        )
    if not has_code:
        missing.append(Missing(what="what the instructions are", why=say("the code could not be disassembled")))
    if subject.architecture is None:
        missing.append(Missing(what="which pipes execute the instructions", why=say("there is no table for this GPU")))
    uncounted = [use for use in uses if use.counted_ratio is None and use.pipe.counters]
    if uncounted:
        names = tuple(use.pipe.counters[0] for use in uncounted)
        pipes = ", ".join(use.pipe.title for use in uncounted)
        missing.append(lack(f"the counted use of {pipes}", *names, section=_PIPES_SECTION, needs_all=True))
    return tuple(missing)


ANALYSIS = Analysis(name="instruction_mix", title="What is executed", order=100, answer=_answer)
