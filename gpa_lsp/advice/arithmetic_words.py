"""What to say about slow arithmetic: which operation on which line, how often it leaves the fast path, what would be cheaper."""

from collections import Counter
from collections.abc import Sequence

from gpa_lsp.advice.hint_words import begin_sentence, locate, spell_number
from gpa_lsp.advice.source_words import find_own_frame, quote, read_parts, shorten_file
from gpa_lsp.advice.subject import Subject
from gpa_lsp.basis.locations import SourceLine
from gpa_lsp.dataflow.arithmetic.patterns import Family
from gpa_lsp.dataflow.arithmetic.sequences import ArithmeticSequence, Constancy

_FEWEST_INSTRUCTIONS = 3
"""A line with fewer instructions of a division does not divide; compilers give single ones the line of a neighbour."""

_WORTH_SAYING = 0.01
"""Smaller shares of executions that leave the fast path are not mentioned."""

_SINGLE_REMEDIES = {
    Family.DIVISION: "`__fdividef(x, y)` or the flag -prec-div=false divides approximately",
    Family.ROOT: "the flag -prec-sqrt=false takes the hardware's root",
    Family.FUNCTION: "the intrinsics (`__sinf`, `__expf`, `__logf`, `__powf`) or -use_fast_math take the hardware's functions",
}
_DOUBLE_REMEDIES = {
    Family.DIVISION: "divide once and multiply where one divisor serves several quotients; use float where its accuracy does",
    Family.ROOT: "compare squares instead of roots where only the order matters; use float where its accuracy does",
    Family.FUNCTION: "replace powers with small whole exponents by products; use float, or a polynomial of your own range, where that will do",
}


def name_operations(subject: Subject, members: Sequence[ArithmeticSequence]) -> str:
    """``the FP64 division in line 288 of k.cu``, ``the 4 FP64 divisions …``; all members are of one place and operation."""
    first = members[0]
    title = first.operation.title
    place = _locate_lines(subject, first)
    expressions = _quote_expressions(subject, first)
    if len(members) == 1:
        return f"the {title}{expressions} {place}"
    plural = title if first.operation.family is Family.FUNCTION else f"{title}s"
    times = f"the {spell_number(len(members))} {plural}" if plural != title else f"the {title} ({len(members)} times)"
    return f"{times}{expressions} {place}"


def _locate_lines(subject: Subject, sequence: ArithmeticSequence) -> str:
    """In which line an operation is, or in which lines: one reciprocal of an integer can serve quotients and remainders of several."""
    places = list_shared_lines(subject, sequence)
    if not places:
        return locate(subject, sequence.anchor)
    lines = [place.line for place in places]
    return f"in lines {', '.join(str(line) for line in lines[:-1])} and {lines[-1]} of {shorten_file(places[0].file)}"


def list_shared_lines(subject: Subject, sequence: ArithmeticSequence) -> tuple[SourceLine, ...]:
    """The lines, ascending, whose quotients and remainders one expansion of an integer division serves; empty unless there are several."""
    own = find_own_frame(subject, sequence.anchor)
    if sequence.operation.family is not Family.INTEGER_DIVISION or sequence.site is not None or own is None:
        return ()
    frames = [find_own_frame(subject, row) for row in sequence.inlined]
    counts = Counter(frame.line for frame in frames if frame is not None and frame.file == own.file)
    lines = sorted(line for line, count in counts.items() if count >= _FEWEST_INSTRUCTIONS)
    return tuple(SourceLine(file=own.file, line=line) for line in lines) if len(lines) > 1 else ()


def _quote_expressions(subject: Subject, sequence: ArithmeticSequence) -> str:
    """The divisions of the line, or the functions it calls, where its source is at hand and it has one of them."""
    parts = read_parts(subject, sequence.anchor)
    if parts is None:
        return ""
    is_division = sequence.operation.family in (Family.DIVISION, Family.INTEGER_DIVISION)
    found = parts.divisions if is_division else parts.calls
    return f" {quote(found)}" if len(found) == 1 else ""


def describe_size(members: Sequence[ArithmeticSequence]) -> str:
    """How much code one operation is: ``takes 24 instructions and, for some operands, a routine of 88``."""
    verb = "take" if len(members) > 1 else "takes"
    each = " each" if len(members) > 1 else ""
    own = round(sum(len(one.inlined) + len(one.call_block) for one in members) / len(members))
    routine = max(len(one.callee) for one in members)
    if members[0].inlined:
        return f"{verb} {own} instructions{each}" + (
            f", and a routine of {routine} for some operands" if routine else ""
        )
    calls = "call" if len(members) > 1 else "calls"
    return f"{calls} a routine of {routine} instructions" if routine else f"{calls} a routine"


def describe_slow_path(subject: Subject, members: Sequence[ArithmeticSequence]) -> str:
    """How often the called routine was needed; empty where nothing is called, or executions were not counted, or it hardly happens."""
    calls = runs = 0
    for sequence in members:
        if sequence.site is None or not sequence.inlined:
            continue
        counts = subject.rows.executions[list(sequence.inlined)]
        called = int(subject.rows.executions[sequence.site])
        if called < 0 or int(counts.max()) <= 0:
            continue
        calls += called
        runs += int(counts.max())
    if not runs or calls / runs < _WORTH_SAYING:
        return ""
    share = 100 * min(calls / runs, 1.0)
    cause = _SLOW_PATH_CAUSES.get(members[0].operation.family, "")
    return f"{share:.0f} % of the executions took the slow path, a call{cause}"


_SLOW_PATH_CAUSES = {
    Family.DIVISION: " (operands outside the fast path's range; zero, tiny or huge ones are)",
    Family.ROOT: " (operands outside the fast path's range; zero, tiny or huge ones are)",
    Family.FUNCTION: " (large arguments)",
    Family.INTEGER_DIVISION: " (values that need more than 32 bits)",
}


def describe_divisor_remedy(subject: Subject, members: Sequence[ArithmeticSequence]) -> str:
    """What to do about a divisor that is known beforehand; empty where it changes all the time or is not known."""
    divisors = [one.divisor for one in members if one.divisor is not None]
    kinds = {divisor.constancy for divisor in divisors}
    if not divisors or Constancy.VARYING in kinds:
        return ""
    parts = read_parts(subject, members[0].anchor)
    named = tuple(dict.fromkeys(parts.divisors)) if parts is not None else ()
    written = quote(named) if len(named) == 1 else ""
    texts = {divisor.text for divisor in divisors}
    if kinds == {Constancy.CONSTANT}:
        number = written or (texts.pop() if len(texts) == 1 and all(texts) else "")
        name = f"the divisor {number} is a constant" if number else "the divisor is a constant"
        return f"{name}: multiply by its reciprocal, written out or computed once, instead"
    name = f"the divisor {written}" if written else "the divisor"
    if all(subject.scopes.loop_of(one.anchor) < 0 for one in members):
        return f"{name} is the same for all threads: compute its reciprocal once on the host, and multiply"
    return f"{name} does not change in the loop: compute its reciprocal once before it, or on the host, and multiply"


def describe_operations(subject: Subject, members: Sequence[ArithmeticSequence]) -> str:
    """What accurate floating-point operations of one line are."""
    return f"{begin_sentence(name_operations(subject, members))} {describe_size(members)}."


def choose_operation_remedy(subject: Subject, members: Sequence[ArithmeticSequence]) -> str:
    """What to do about them; the operations are divisions, roots or functions."""
    operation = members[0].operation
    remedies = [describe_divisor_remedy(subject, members)]
    if operation.bits == 32:
        remedies.append(_SINGLE_REMEDIES[operation.family])
    else:
        # A divisor that is known beforehand needs no other remedy.
        remedies.extend([] if remedies[0] else [_DOUBLE_REMEDIES[operation.family]])
        remedies.append("no compiler flag makes FP64 arithmetic faster" if operation.bits == 64 else "")
    return " ".join(f"{begin_sentence(clause)}." for clause in remedies if clause)
