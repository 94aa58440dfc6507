"""What to say about results that could be asked for earlier."""

from gpa_lsp.advice.hint_words import locate
from gpa_lsp.advice.model import Hotspot
from gpa_lsp.advice.source_words import describe_line, describe_place, describe_scope
from gpa_lsp.advice.subject import Subject
from gpa_lsp.binary.opcodes import Access
from gpa_lsp.dataflow.reordering.slack import Hold, Slack, TurnSlack


def write_reorder_hint(subject: Subject, hotspot: Hotspot, slack: Slack) -> str:
    """How far a def could move up, or its use down, in one pass through the code."""
    place = describe_place(subject, hotspot.def_row)
    sentences = []
    above = int(slack.def_track.instructions[slack.above].sum())
    below = int(slack.use_track.instructions[slack.below].sum())
    if above and slack.earliest_row is not None:
        sentences.append(
            f"{_capitalise(place)} could be issued {_count(above)} earlier{_describe_earliest(subject, hotspot, slack.earliest_row)}"
            f"{_describe_hold(subject, hotspot, slack)}."
        )
    if below:
        use = describe_line(subject, hotspot.def_row if hotspot.use_row is None else hotspot.use_row)
        first = describe_line(subject, slack.use_track.row_of(int(slack.below[0])))
        where = f" (from {first} on)" if first != use else ""
        what = "Its value" if above else f"The value of {place}"
        sentences.append(f"{what} is used in {use} before {_count(below)}{where} that could come first.")
    return " ".join(sentences)


def write_advance_hint(subject: Subject, hotspot: Hotspot, slack: TurnSlack) -> str:
    """Loading a turn ahead: what would run meanwhile."""
    place = describe_place(subject, hotspot.def_row)
    scope = subject.scopes.scopes[int(subject.scopes.innermost[hotspot.def_row])]
    use = describe_line(subject, hotspot.def_row if hotspot.use_row is None else hotspot.use_row)
    distance = hotspot.distance_instructions
    soon = f" {_count(distance)} later, in {use}" if distance is not None else f" in {use}"
    need = "needs" if slack.instructions == 1 else "need"
    return (
        f"The value of {place} is needed{soon}. Load the value of the next turn of {describe_scope(subject, scope)} into a second variable "
        f"before this one is used: {_count(slack.instructions)} of the turn {need} neither."
    )


def _describe_earliest(subject: Subject, hotspot: Hotspot, earliest_row: int) -> str:
    line = describe_line(subject, earliest_row)
    return "" if line == describe_line(subject, hotspot.def_row) else f", before {line}"


def _describe_hold(subject: Subject, hotspot: Hotspot, slack: Slack) -> str:
    """Where its operands are ready, what has to move along, or what it must stay behind."""
    if slack.hold_row is None:
        return ": its operands are ready before"
    line = describe_line(subject, slack.hold_row)
    if slack.hold is Hold.OPERAND:
        what = "address" if subject.rows.opcode(hotspot.def_row).access is Access.LOAD else "operand"
        if line == describe_line(subject, hotspot.def_row):
            return ""
        is_named = slack.earliest_row is not None and line == describe_line(subject, slack.earliest_row)
        where = "" if is_named else f" {locate(subject, slack.hold_row)}"
        return f", together with what makes its {what}{where}"
    return f": it must stay behind the {slack.hold.value} in {line}"


def _count(instructions: int) -> str:
    """``1 instruction``, ``3 instructions``."""
    return f"{instructions:,} instruction{'' if instructions == 1 else 's'}"


def _capitalise(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"
