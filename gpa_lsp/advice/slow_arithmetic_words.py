"""What to say about slow arithmetic that has a cheaper form: divisions of integers, double literals, conversions, FP64."""

from collections.abc import Iterable, Sequence

from gpa_lsp.advice.arithmetic_words import describe_size, describe_slow_path, name_operations
from gpa_lsp.advice.hint_words import begin_sentence, locate
from gpa_lsp.advice.slow_arithmetic import SlowKind, Slowness, find_slowness
from gpa_lsp.advice.source_words import describe_scope, quote, read_parts
from gpa_lsp.advice.subject import Subject
from gpa_lsp.dataflow.arithmetic.sequences import ArithmeticSequence, Constancy
from gpa_lsp.rows.scopes import Scope

_REMEDIES = {
    SlowKind.DOUBLE_PRECISION: "use float where its accuracy does, or a pair of floats where it nearly does",
    SlowKind.CONVERSION: "keep the value in one type, or convert it once where it does not change",
    SlowKind.SPECIAL_FUNCTION: "compute it once where its operand does not change, and share it between lines that need the same one",
    SlowKind.BIT_COUNT: "count once for several words, or keep the count instead of the bits",
}


def advise_division(subject: Subject, members: Sequence[ArithmeticSequence]) -> str:
    """About integer divisions of one line."""
    slow_path = describe_slow_path(subject, members)
    sentences = [
        describe_division(subject, members),
        f"{begin_sentence(slow_path)}." if slow_path else "",
        choose_division_remedy(subject, members),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def describe_division(subject: Subject, members: Sequence[ArithmeticSequence]) -> str:
    """What integer divisions of one line are."""
    what = begin_sentence(name_operations(subject, members))
    return f"{what} {describe_size(members)}: the hardware has no integer divider."


def choose_division_remedy(subject: Subject, members: Sequence[ArithmeticSequence]) -> str:
    """What to do about integer divisions of one line."""
    kinds = {one.divisor.constancy for one in members if one.divisor is not None}
    parts = read_parts(subject, members[0].anchor)
    if parts is not None and parts.begins_loop and not parts.divisions:
        remedy = (
            "The line only begins a loop: the compiler divides to take the index of collapsed loops apart. Collapse fewer loops, or give "
            "each a dimension of the grid."
        )
    elif kinds and kinds <= {Constancy.INVARIANT, Constancy.CONSTANT}:
        remedy = (
            "The divisor does not change: make it known to the compiler, use a shift and a mask if it is a power of two, or multiply by a "
            "factor computed once on the host."
        )
    elif any(subject.scopes.loop_of(one.anchor) >= 0 for one in members):
        remedy = "Carry quotient and remainder along from one turn to the next, or use a shift and a mask if the divisor is a power of two."
    else:
        remedy = "Use a shift and a mask if the divisor is a power of two."
    if any(one.operation.bits == 64 for one in members):
        remedy += " Use 32-bit integers if the values fit: that is the part without a call."
    return remedy


def advise_widened(subject: Subject, rows: Sequence[int], chains: int) -> str:
    """About detours through double precision on one line.

    Args:
        subject: the kernel.
        rows: of all of them, ascending.
        chains: how many they are.
    """
    doubles = _list_doubles(subject, rows[0])
    link = ":" if doubles else "."
    return f"{describe_widened(subject, rows, chains)}{link} {choose_widened_remedy(subject, rows)}"


def describe_widened(subject: Subject, rows: Sequence[int], chains: int) -> str:
    """What detours through double precision on one line are; no full stop behind it. Arguments as of :func:`advise_widened`."""
    times = f" {chains} times" if chains > 1 else ""
    detour = f"are widened to FP64, computed with, and narrowed again{times}"
    slowness = _find_double_slowness(subject)
    rate = f", at {slowness}" if slowness else ""
    return f"Single precision values {locate(subject, rows[0])} {detour}{rate}"


def choose_widened_remedy(subject: Subject, rows: Sequence[int]) -> str:
    """What to do about them; where the line has literals of type double it begins with those, in lower case."""
    doubles = _list_doubles(subject, rows[0])
    if not doubles:
        return "Look for a literal without an f, a double variable, or a function of double precision (`sqrt` for `sqrtf`)."
    plural = "s" if len(doubles) > 1 else ""
    fixed = quote([f"{literal}f" for literal in doubles])
    verb = "are" if len(doubles) > 1 else "is"
    return f"the literal{plural} {quote(doubles)} {verb} of type double. Write {fixed}."


def _list_doubles(subject: Subject, row: int) -> tuple[str, ...]:
    parts = read_parts(subject, row)
    return parts.doubles if parts is not None else ()


def _find_double_slowness(subject: Subject) -> str:
    architecture = subject.kernel.architecture
    found = find_slowness(architecture, "DFMA") if architecture is not None else None
    return found.words if found is not None else ""


def advise_slow(subject: Subject, row: int, slowness: Slowness) -> str:
    """About the slow instructions of one line; ``row`` is the one that costs most."""
    return f"{describe_slow(subject, row, slowness)} {choose_slow_remedy(slowness)}"


def describe_slow(subject: Subject, row: int, slowness: Slowness) -> str:
    """What is slow about them."""
    mnemonic = subject.rows.mnemonic(row)
    where = ", in a loop" if subject.scopes.loop_of(row) >= 0 else ""
    what = f"{slowness.kind.value}{_name_types(mnemonic)} {locate(subject, row)} ({mnemonic}{where})"
    return f"The {what} is slow on this GPU: {slowness.words}."


def choose_slow_remedy(slowness: Slowness) -> str:
    """What to do about them."""
    return f"{begin_sentence(_REMEDIES[slowness.kind])}."


def advise_double(subject: Subject, scope: Scope, causes: Iterable[int], slowness: Slowness) -> str:
    """About the double precision of a loop or function.

    Args:
        subject: the kernel.
        scope: which.
        causes: rows of the instructions, those that cost most first.
        slowness: of them.
    """
    rows = dict.fromkeys(causes)
    doubles: dict[str, None] = {}
    for row in rows:
        parts = read_parts(subject, row)
        doubles.update(dict.fromkeys(parts.doubles if parts is not None else ()))
    literals = f" Literals such as {quote(tuple(doubles))} are of type double." if doubles else ""
    remedy = _REMEDIES[SlowKind.DOUBLE_PRECISION]
    many = f"{len(rows)} instructions" if len(rows) > 1 else "1 instruction"
    return (
        f"The FP64 arithmetic in {describe_scope(subject, scope)} ({many}) is slow on this GPU: {slowness.words}. "
        f"{remedy[0].upper()}{remedy[1:]}.{literals}"
    )


def _name_types(mnemonic: str) -> str:
    """What is converted to what; empty for anything but a conversion.

    >>> _name_types("I2F.F64"), _name_types("F2F.F32.F64"), _name_types("MUFU.RCP")
    (' from integer to FP64', ' from FP64 to FP32', '')
    """
    name, *modifiers = mnemonic.split(".")
    floats = [f"FP{modifier.removeprefix('F')}" for modifier in modifiers if modifier in ("F16", "F32", "F64")]
    if name == "F2F" and len(floats) == 2:
        return f" from {floats[1]} to {floats[0]}"
    if name in ("I2F", "F2I"):
        real = floats[0] if floats else "FP32"
        return f" from integer to {real}" if name == "I2F" else f" from {real} to integer"
    return ""
