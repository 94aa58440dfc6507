"""Hints and findings about slow arithmetic: the operation and its line, its cost, cheaper replacements."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from gpa_lsp.code.binary.linkage_names import demangle
from gpa_lsp.diagnosis.advice.naming import (
    describe_scope,
    find_own_frame,
    locate,
    name_code,
    name_line,
    quote,
    read_parts,
)
from gpa_lsp.diagnosis.advice.slow_arithmetic import SlowKind, Slowness, find_slowness
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.locations import SourceLine
from gpa_lsp.foundation.ownership import has_collapsed_loops
from gpa_lsp.foundation.prose import NOTHING, Code, Place, Sentence, capitalize, count, join, list_of, percent, say
from gpa_lsp.kernel.dataflow.arithmetic import ArithmeticSequence, Constancy
from gpa_lsp.kernel.dataflow.expansions import Family
from gpa_lsp.kernel.scopes import Scope

# A line with fewer instructions of a division does not divide; compilers give single ones the line of a neighbour
_FEWEST_INSTRUCTIONS = 3

_WORTH_SAYING = 0.01  # Smaller shares of executions that leave the fast path are not mentioned

_SINGLE_REMEDIES = {
    Family.DIVISION: say(
        "use {intrinsic} or {option} to divide approximately",
        intrinsic=Code(text="__fdividef(x, y)"),
        option=Code(text="-prec-div=false"),
    ),
    Family.ROOT: say("use {option} for the hardware's approximate root", option=Code(text="-prec-sqrt=false")),
    Family.FUNCTION: say(
        "use intrinsics ({names}) or {option}",
        names=join(map(name_code, ("__sinf", "__expf", "__logf", "__powf")), ", "),
        option=Code(text="-use_fast_math"),
    ),
}
_DOUBLE_REMEDIES = {
    Family.DIVISION: say(
        "divide once and multiply where quotients share a divisor, or use float where it is accurate enough"
    ),
    Family.ROOT: say("compare squares where only the order matters, or use float where it is accurate enough"),
    Family.FUNCTION: say(
        "replace small integer powers by products, or use float or a polynomial for your range where that is accurate enough"
    ),
}
_NO_FLAG = say("no compiler flag speeds up FP64 arithmetic")

_WIDENING = "F2F.F64.F32"
# Intrinsics whose name says how they round (CUDA C++ Programming Guide, intrinsic functions), and what to write in their place
_ROUNDED = {
    Family.DIVISION: (re.compile(r"__f(?:rcp|div)_r[nzud]\b"), name_code("__fdividef(x, y)")),
    Family.ROOT: (
        re.compile(r"__fr?sqrt_r[nzud]\b"),
        say("{root} with {option}", root=Code(text="sqrtf"), option=Code(text="-prec-sqrt=false")),
    ),
}

_SLOW_REMEDIES = {
    SlowKind.DOUBLE_PRECISION: say("use float where it is accurate enough, or a pair of floats where it nearly is"),
    SlowKind.CONVERSION: say("keep the value in one type, or convert it once where it does not change"),
    SlowKind.SPECIAL_FUNCTION: say(
        "compute it once where its operand does not change, and share it between lines that need the same value"
    ),
    SlowKind.BIT_COUNT: say("count once for several words, or keep the count instead of the bits"),
}

_SLOW_PATH_CAUSES = {
    Family.DIVISION: "zero, tiny or huge operands",
    Family.ROOT: "zero, tiny or huge operands",
    Family.FUNCTION: "large arguments",
    Family.INTEGER_DIVISION: "values beyond 32 bits",
}


def advise_operations(subject: Subject, members: Sequence[ArithmeticSequence]) -> Sentence:
    """Describe accurate floating-point operations of one place, and choose remedies for them."""
    return join([describe_operations(subject, members), choose_operation_remedy(subject, members)])


def describe_operations(subject: Subject, members: Sequence[ArithmeticSequence]) -> Sentence:
    """Describe accurate floating-point operations of one place: name, size, and how often they leave the fast path."""
    return say(
        "{operations} {size}.", operations=_name_operations(subject, members), size=_describe_size(subject, members)
    )


def describe_division(subject: Subject, members: Sequence[ArithmeticSequence]) -> Sentence:
    """Describe integer divisions of one place."""
    what, size = _name_operations(subject, members), _describe_size(subject, members)
    return say("{divisions} {size}: GPUs have no integer divider.", divisions=what, size=size)


def _name_operations(subject: Subject, members: Sequence[ArithmeticSequence]) -> Sentence:
    """``The FP64 division at line 288 of k.cu``, ``The 4 FP64 divisions …``; all members are of one place and operation."""
    first = members[0]
    title = first.operation.title
    place = _locate_lines(subject, first)
    expression = _quote_expression(subject, first)
    what = say(" {expression}", expression=expression) if expression else NOTHING
    if len(members) == 1:
        return say("The {title}{what} {place}", title=title, what=what, place=place)
    if first.operation.family is Family.FUNCTION:
        return say(
            "The {title}{what} {place} ({n})", title=title, what=what, place=place, n=count(len(members), "time")
        )
    return say("The {operations}{what} {place}", operations=count(len(members), title), what=what, place=place)


def _locate_lines(subject: Subject, sequence: ArithmeticSequence) -> Sentence:
    """Locate an operation by its line or lines: one reciprocal of an integer can serve quotients and remainders of several."""
    places = list_shared_lines(subject, sequence)
    if not places:
        return locate(subject, sequence.anchor)
    *others, last = places
    lines = [Sentence((Place(file=place.file, line=place.line),)) for place in others]
    return say("at {lines}", lines=list_of([*lines, name_line(last.file, last.line)]))


def list_shared_lines(subject: Subject, sequence: ArithmeticSequence) -> tuple[SourceLine, ...]:
    """The lines, ascending, whose quotients and remainders one expansion of an integer division serves; empty unless there are several."""
    own = find_own_frame(subject, sequence.anchor)
    if sequence.operation.family is not Family.INTEGER_DIVISION or sequence.site is not None or own is None:
        return ()
    frames = [find_own_frame(subject, row) for row in sequence.inlined]
    counts = Counter(frame.line for frame in frames if frame is not None and frame.file == own.file)
    lines = sorted(line for line, instructions in counts.items() if instructions >= _FEWEST_INSTRUCTIONS)
    return tuple(SourceLine(file=own.file, line=line) for line in lines) if len(lines) > 1 else ()


def _quote_expression(subject: Subject, sequence: ArithmeticSequence) -> Sentence:
    """The division of the line, or the function it calls, where its source is at hand and it has one of them."""
    parts = read_parts(subject, sequence.anchor)
    if parts is None:
        return NOTHING
    is_division = sequence.operation.family in (Family.DIVISION, Family.INTEGER_DIVISION)
    found = parts.divisions if is_division else parts.calls
    return quote(found) if len(found) == 1 else NOTHING


def _describe_size(subject: Subject, members: Sequence[ArithmeticSequence]) -> Sentence:
    """Describe the code size of one operation: ``takes 24 instructions, plus a routine of 88 for some operands``."""
    is_one = len(members) == 1
    routine = max(len(one.callee) for one in members)
    if not members[0].inlined:
        called = say(" of {size}", size=count(routine, "instruction")) if routine else NOTHING
        return say("{calls} a routine{called}", calls="calls" if is_one else "call", called=called)
    own = round(sum(len(one.inlined) + len(one.call_block) for one in members) / len(members))
    return say(
        "{takes} {own}{each}{slow}",
        takes="takes" if is_one else "take",
        own=count(own, "instruction"),
        each="" if is_one else " each",
        slow=_describe_slow_path(subject, members, routine),
    )


def _describe_slow_path(subject: Subject, members: Sequence[ArithmeticSequence], routine: int) -> Sentence:
    """The routine that some operands need, and how often they did; empty where nothing is called."""
    ratio = _measure_slow_path(subject, members)
    called = say("a routine of {size}", size=count(routine)) if routine else say("a call")
    if ratio >= _WORTH_SAYING:
        cause = _SLOW_PATH_CAUSES[members[0].operation.family]
        return say(
            ", plus {called} in {share} of executions ({cause})", called=called, share=percent(ratio), cause=cause
        )
    return say(", plus {called} for some operands", called=called) if routine else NOTHING


def _measure_slow_path(subject: Subject, members: Sequence[ArithmeticSequence]) -> float:
    """Share of executions that needed the called routine; 0 where nothing is called or executions were not counted."""
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
    return min(calls / runs, 1.0) if runs else 0.0


def choose_operation_remedy(subject: Subject, members: Sequence[ArithmeticSequence]) -> Sentence:
    """Choose remedies for floating-point operations of one place: divisions, roots or functions."""
    operation = members[0].operation
    remedies = [_describe_divisor_remedy(subject, members)]
    rounded = _list_rounded(subject, members)
    if operation.bits == 32 and rounded:
        words = "no flag changes how {names} rounds: use {plain} where fewer digits will do"
        remedies.append(say(words, names=quote(rounded), plain=_ROUNDED[operation.family][1]))
    elif operation.bits == 32:
        remedies.append(_SINGLE_REMEDIES[operation.family])
    elif widening := _list_widening(subject, members):
        words = "{what}, which widens the float operands here unless another one is double: write {fixed}"
        remedies.append(say(words, what=describe_doubles(widening), fixed=correct_doubles(widening)))
    else:
        # A divisor that is known beforehand needs no other remedy.
        remedies.extend([] if remedies[0] else [_DOUBLE_REMEDIES[operation.family]])
        remedies.append(_NO_FLAG if operation.bits == 64 else NOTHING)
    return _end_clauses(remedies)


def _list_rounded(subject: Subject, members: Sequence[ArithmeticSequence]) -> tuple[str, ...]:
    """The intrinsics on the line that are the operation and round as their name says; empty where there are others that may be it."""
    parts, family = read_parts(subject, members[0].anchor), members[0].operation.family
    if parts is None or family not in _ROUNDED or (family is Family.DIVISION and parts.divisions):
        return ()
    return tuple(call for call in parts.calls if _ROUNDED[family][0].match(call))


def _list_widening(subject: Subject, members: Sequence[ArithmeticSequence]) -> tuple[str, ...]:
    """Double literals on the line of an FP64 operation to which single precision is widened there; empty where nothing is, or there are none."""
    rows, own = subject.rows, find_own_frame(subject, members[0].anchor)
    parts = read_parts(subject, members[0].anchor)
    if own is None or parts is None or not parts.doubles or members[0].operation.bits != 64:
        return ()
    widened = (row for row in range(len(rows)) if rows.mnemonic(row) == _WIDENING)
    frames = (find_own_frame(subject, row) for row in widened)
    is_widened = any(one is not None and (one.file, one.line) == (own.file, own.line) for one in frames)
    return parts.doubles if is_widened else ()


def _describe_divisor_remedy(subject: Subject, members: Sequence[ArithmeticSequence]) -> Sentence:
    """Describe the remedy for a divisor that is known beforehand; empty where it varies or is unknown."""
    divisors = [one.divisor for one in members if one.divisor is not None]
    kinds = {divisor.constancy for divisor in divisors}
    if not divisors or Constancy.VARYING in kinds:
        return NOTHING
    parts = read_parts(subject, members[0].anchor)
    named = tuple(dict.fromkeys(parts.divisors)) if parts is not None else ()
    written = quote(named) if len(named) == 1 else NOTHING
    texts = {divisor.text for divisor in divisors}
    if kinds == {Constancy.CONSTANT}:
        text = texts.pop() if len(texts) == 1 else None
        name = written or (name_code(text) if text else NOTHING)
        return say("{divisor} is a constant: multiply by its reciprocal", divisor=join(["the divisor", name]))
    if all(subject.scopes.loop_of(one.anchor) < 0 for one in members):
        words = "{divisor} is the same for all threads: compute its reciprocal once on the host and multiply"
    else:
        words = "{divisor} is loop-invariant: compute its reciprocal once before the loop or on the host, and multiply"
    return say(words, divisor=join(["the divisor", written]))


def choose_division_remedy(subject: Subject, members: Sequence[ArithmeticSequence]) -> Sentence:
    """Choose remedies for integer divisions of one place."""
    kinds = {one.divisor.constancy for one in members if one.divisor is not None}
    parts = read_parts(subject, members[0].anchor)
    if (
        has_collapsed_loops(demangle(subject.kernel.name))
        and parts is not None
        and parts.begins_loop
        and not parts.divisions
    ):
        remedy = "the compiler divides to recover the indices of collapsed loops: collapse fewer, or map each to a grid dimension"
    elif kinds and kinds <= {Constancy.INVARIANT, Constancy.CONSTANT}:
        remedy = (
            "the divisor does not change: make it a compile-time constant, shift and mask if it is a power of two, or multiply by a factor "
            "computed once on the host"
        )
    elif any(subject.scopes.loop_of(one.anchor) >= 0 for one in members):
        remedy = "update quotient and remainder from one iteration to the next, or shift and mask if the divisor is a power of two"
    else:
        remedy = "shift and mask if the divisor is a power of two"
    is_wide = any(one.operation.bits == 64 for one in members)
    return _end_clauses(
        [say("use 32-bit integers if the values fit, which avoids the call") if is_wide else NOTHING, say(remedy)]
    )


def find_double_row(subject: Subject, rows: Sequence[int]) -> int:
    """The row whose line says why there is FP64: the compiler may hoist a widening to where its operand is made."""
    for row in rows:
        parts = read_parts(subject, row)
        if parts is not None and parts.doubles:
            return row
    computing = (
        row for row in rows if subject.rows.mnemonic(row).partition(".")[0] in ("DADD", "DMUL", "DFMA", "DSETP")
    )
    return next(computing, rows[0])


def describe_widened(subject: Subject, rows: Sequence[int], chains: int) -> Sentence:
    """Describe detours through double precision on one line."""
    place = find_double_row(subject, rows)
    architecture = subject.kernel.architecture
    slowness = find_slowness(architecture, "DFMA") if architecture is not None else None
    return say(
        "FP32 values {place} are widened to FP64, computed with and narrowed again{times}{rate}.",
        place=locate(subject, place),
        times=say(" {chains}", chains=count(chains, "time")) if chains > 1 else NOTHING,
        rate=say(", at {rate}", rate=slowness.words) if slowness is not None else NOTHING,
    )


def choose_widened_remedy(subject: Subject, rows: Sequence[int]) -> Sentence:
    """Choose the remedy for detours through double precision, by the double literals of the line."""
    parts = read_parts(subject, find_double_row(subject, rows))
    doubles = parts.doubles if parts is not None else ()
    if not doubles:
        return say(
            "Look for a literal without an f, a double variable or a double-precision function ({double} for {single}).",
            double=Code(text="sqrt"),
            single=Code(text="sqrtf"),
        )
    return say("{what}: write {fixed}.", what=describe_doubles(doubles), fixed=correct_doubles(doubles))


def describe_doubles(literals: Sequence[str]) -> Sentence:
    """``The literal `0.7` is double``."""
    template = "The literals {literals} are double" if len(literals) > 1 else "The literal {literals} is double"
    return say(template, literals=quote(literals))


def correct_doubles(literals: Sequence[str]) -> Sentence:
    """``0.7f``."""
    return quote([f"{literal}f" for literal in literals])


def describe_slow(subject: Subject, row: int, slowness: Slowness) -> Sentence:
    """Describe slow instructions of one line; ``row`` is the one that costs most."""
    mnemonic = subject.rows.mnemonic(row)
    return say(
        "The {kind}{types} {place} ({mnemonic}{loop}) is slow on this GPU: {rate}.",
        kind=slowness.kind.value,
        types=_name_types(mnemonic),
        place=locate(subject, row),
        mnemonic=Code(text=mnemonic),
        loop=", in a loop" if subject.scopes.loop_of(row) >= 0 else "",
        rate=slowness.words,
    )


def choose_slow_remedy(slowness: Slowness) -> Sentence:
    """Choose the remedy for slow instructions."""
    return _end_clauses([_SLOW_REMEDIES[slowness.kind]])


def advise_double(subject: Subject, scope: Scope, causes: Iterable[int], slowness: Slowness) -> Sentence:
    """About the double precision of a loop or function."""
    rows = dict.fromkeys(causes)
    doubles: dict[str, None] = {}
    for row in rows:
        parts = read_parts(subject, row)
        doubles.update(dict.fromkeys(parts.doubles if parts is not None else ()))
    what = say(
        "The FP64 arithmetic in {scope} ({size}) is slow on this GPU: {rate}.",
        scope=describe_scope(subject, scope),
        size=count(len(rows), "instruction"),
        rate=slowness.words,
    )
    literals = say("literals such as {literals} are double", literals=quote(tuple(doubles))) if doubles else NOTHING
    return join([what, _end_clauses([_SLOW_REMEDIES[SlowKind.DOUBLE_PRECISION], literals])])


def _end_clauses(clauses: Iterable[Sentence]) -> Sentence:
    """Clauses as a sentence; empty ones are left out."""
    return say("{clauses}.", clauses=capitalize(join(clauses, "; ")))


def _name_types(mnemonic: str) -> str:
    """Name source and result type of a conversion; empty for other instructions.

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
