"""Small turns of phrase that several hints share."""

from collections.abc import Iterable

from gpa_lsp.advice.source_words import describe_line, find_own_frame
from gpa_lsp.advice.subject import Subject

_SMALL_NUMBERS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)


def locate(subject: Subject, row: int) -> str:
    """Where an instruction is, as the end of a phrase: ``in line 12 of k.cu``, or ``at 0x1e0`` without a line."""
    if find_own_frame(subject, row) is not None:
        return f"in {describe_line(subject, row)}"
    return f"at {int(subject.rows.function_of(row).pc_offsets[subject.rows.index_of(row)]):#x}"


def begin_sentence(words: str) -> str:
    """With a capital letter.

    >>> begin_sentence("the load of `x[i]`")
    'The load of `x[i]`'
    """
    return words[:1].upper() + words[1:]


def count_things(number: int, thing: str) -> str:
    """A number and a noun that takes an s.

    >>> count_things(1, "byte"), count_things(16, "byte")
    ('1 byte', '16 bytes')
    """
    return f"{number} {thing}{'' if number == 1 else 's'}"


def list_counts(counts: Iterable[tuple[int, str, str]]) -> str:
    """How many there are of each of several things, those there are none of left out.

    Args:
        counts: number, singular and plural of each.

    >>> list_counts([(1, "integer division", "integer divisions"), (0, "detour", "detours"), (84, "conversion", "conversions")])
    '1 integer division, 84 conversions'
    """
    return ", ".join(
        f"{number:,} {singular if number == 1 else plural}" for number, singular, plural in counts if number
    )


def spell_number(number: int) -> str:
    """A small number as a word, so that it does not stand beside another figure.

    >>> spell_number(2), spell_number(16)
    ('two', '16')
    """
    return _SMALL_NUMBERS[number] if 0 <= number < len(_SMALL_NUMBERS) else f"{number:,}"


def join_sentences(sentences: Iterable[str], most: int) -> str:
    """A few sentences, each once, empty ones left out.

    >>> join_sentences(["A.", "", "A.", "B.", "C."], 2)
    'A. B.'
    """
    found: dict[str, None] = {}
    for sentence in sentences:
        if sentence:
            found.setdefault(sentence)
        if len(found) == most:
            break
    return " ".join(found)
