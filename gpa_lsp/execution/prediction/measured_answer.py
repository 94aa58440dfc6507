"""What was measured beside what was emulated, as an answer: :func:`answer_measured`."""

from msgspec import Struct

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.diagnosis.analyses.answers import Answer, Column, Finding, Table, Weight
from gpa_lsp.execution.prediction.model import AGREED_RATIO, ComparedAccess, CountComparison, CountPair
from gpa_lsp.execution.traces.model import AccessGroupKind
from gpa_lsp.foundation.locations import shorten_paths
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import NOTHING, Place, Sentence, count, join, percent, say

NAME = "measured"
_TITLE = "Measured beside emulated"
_MOST_FINDINGS = 5
_COUNTS = ("executions", "sectors", "wavefronts")
_COLUMNS = (
    Column(name="line"),
    Column(name="accesses"),
    *(Column(name=name, quantity=Quantity.COUNT) for one in _COUNTS for name in (one, "emulated")),
    Column(name=""),
)


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
    if compared.why:
        return Answer(
            analysis=NAME,
            title=_TITLE,
            summary=say("Nothing was compared: {why}.", why=compared.why),
            is_known=False,
        )
    accesses = compared.accesses
    if not accesses:
        summary = say("No machine instruction that accesses memory has a line of the PTX.")
        return Answer(analysis=NAME, title=_TITLE, summary=summary, is_known=False)
    lines = _group(accesses)
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


def _group(accesses: tuple[ComparedAccess, ...]) -> list[_LineCounts]:
    members: dict[tuple[object, ...], list[ComparedAccess]] = {}
    for one in accesses:
        key = (one.file or "", one.line or one.ptx_line, one.space, one.kind)
        members.setdefault(key, []).append(one)
    return [_LineCounts(members=tuple(members[key])) for key in sorted(members, key=str)]


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
    remedy = NOTHING
    if not first.is_executed_alike:
        remedy = say("Are the arguments those of the measured launch?")
    text = say("{place}, {accesses}: {what}.", place=_place(first, files), accesses=_name_accesses(first), what=what)
    return Finding(text=text, weight=Weight.HIGH, remedy=remedy)


def _write_row(line: _LineCounts, files: dict[str, str]) -> tuple[Cell, ...]:
    cells: list[Cell] = [str(_place(line.members[0], files)), _name_accesses(line.members[0])]
    for name in _COUNTS:
        pair = line.sum_of(name)
        cells += [None, None] if pair is None else [pair.measured, pair.emulated]
    return (*cells, "differs" if line.differing else "")
