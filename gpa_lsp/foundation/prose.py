"""Sentences whose numbers, places and code are values, so that every renderer rounds, links and marks them in the same way.

A sentence is said once, where its fact is found:

>>> place = Place(file="/src/k.cu", line=12, shown_file="k.cu")
>>> text = say("{share} of the samples are stalled at {place}.", share=percent(0.4123), place=place)
>>> text
'41 % of the samples are stalled at line 12 of k.cu.'

It is a text for callers that need no more; a renderer that links places or marks code asks for its parts:

>>> [type(part).__name__ for part in text.parts]
['Amount', 'str', 'Place', 'str']
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from string import Formatter
from typing import Any

from msgspec import Struct

from gpa_lsp.foundation.figures import Share
from gpa_lsp.foundation.numbers import Quantity, format_quantity, format_share, make_plural


class Amount(Struct, frozen=True, kw_only=True):
    """A number with what it is a number of."""

    value: float | None  # in SI units; None where unknown
    quantity: Quantity  # decides how it is written
    noun: str = ""  # what is counted, in the singular; empty where the quantity or the sentence says it

    def __str__(self) -> str:
        number = format_quantity(self.value, self.quantity)
        return f"{number} {self.noun if number == '1' else make_plural(self.noun)}" if self.noun else number


class Portion(Struct, frozen=True, kw_only=True):
    """A share of samples, written with the margin of its 95 % interval."""

    share: Share  # what was counted, and the interval

    def __str__(self) -> str:
        return format_share(self.share)


class Place(Struct, frozen=True, kw_only=True):
    """A line of source."""

    file: str  # as compiled
    line: int  # 1-based
    shown_file: str = ""  # the file as a reader is told of it; empty where the sentence named it already

    def __str__(self) -> str:
        return f"line {self.line} of {self.shown_file}" if self.shown_file else f"line {self.line}"


class Code(Struct, frozen=True, kw_only=True):
    """Text of a source, a listing or a command line: an expression, a directive, an opcode, an option."""

    text: str  # as it stands there

    def __str__(self) -> str:
        return f"`{self.text}`"


Atom = Amount | Portion | Place | Code  # A value in a sentence

Part = str | Atom  # Of a sentence: words of ours, or a value


class Sentence(str):
    """A text that knows its values: one or several sentences, or a clause of one. Two are equal when they read the same."""

    __slots__ = ("parts",)
    # in order; ``"".join(map(str, parts))`` is the text. Words stand as plain texts, never two in a row.
    parts: tuple[Part, ...]

    def __new__(cls, parts: Iterable[Part] = (), text: str | None = None) -> "Sentence":
        """Put together from words and values; ``text`` is for parts that were put together and written before."""
        if text is not None:
            return _make(tuple(parts), text)
        kept = tuple(_merge_words(parts))
        return _make(kept, "".join(map(str, kept)))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Sentence, (self.parts, str(self)))  # numbers need not be written again where it is loaded

    @property
    def has_values(self) -> bool:
        """Whether it has parts other than words."""
        return any(not isinstance(part, str) for part in self.parts)


def say(template: str, /, **values: Part) -> Sentence:
    """A sentence from a template and the values of its ``{names}``; sentences among them keep their own values.

    Raises:
        KeyError: a name without a value.
        ValueError: a value without a name, or a name with a format of its own: how a number is written is for :mod:`.numbers` to say.
    """
    pieces, names = _split_template(template)
    if not names and not values:
        return _say_plainly(template)
    parts: list[Part] = []
    text = words = ""
    for before, name in pieces:  # reports hold tens of thousands of sentences: words are merged on the way
        text += before
        words += before
        if name is None:
            continue
        value = values[name]
        text += value if isinstance(value, str) else str(value)
        for part in value.parts if isinstance(value, Sentence) else (value,):
            if isinstance(part, str):
                words += part
                continue
            if words:
                parts.append(words)
                words = ""
            parts.append(part)
    if words:
        parts.append(words)
    if len(values) > len(names):
        unused = values.keys() - names
        raise ValueError(f"{template!r} has no place for {', '.join(sorted(unused))}")
    return _make(tuple(parts), text)


def _make(parts: tuple[Part, ...], text: str) -> Sentence:
    """A sentence whose text is known: numbers are written once, however often what they stand in becomes part of something longer."""
    made = str.__new__(Sentence, text)
    made.parts = parts
    return made


@lru_cache(maxsize=4096)
def _say_plainly(template: str) -> Sentence:
    return Sentence(words for words, _ in _split_template(template)[0])


def join(sentences: Iterable[str], separator: str = " ") -> Sentence:
    """Several texts as one; empty ones are left out.

    >>> join([say("{n} left.", n=count(2)), "", "Done."])
    '2 left. Done.'
    """
    parts: list[Part] = []
    for one in sentences:
        if one:
            parts.extend((separator,) if parts else ())
            parts.extend(one.parts if isinstance(one, Sentence) else (one,))
    return Sentence(parts)


def list_of(items: Iterable[str], last: str = "and") -> Sentence:
    """``a, b and c``.

    >>> list_of(["a", "b", "c"]), list_of(["a"]), list_of(["a", "b"], last="or")
    ('a, b and c', 'a', 'a or b')
    """
    every = list(items)
    if len(every) < 2:
        return join(every)
    return join([join(every[:-1], ", "), every[-1]], f" {last} ")


def capitalize(sentence: Sentence) -> Sentence:
    """The same with a capital letter at the beginning, where words begin it.

    >>> capitalize(say("the loop in {line}", line="line 3"))
    'The loop in line 3'
    """
    first, *rest = sentence.parts or ("",)
    return Sentence([first[:1].upper() + first[1:], *rest]) if isinstance(first, str) else sentence


def begin_lower(text: str) -> Sentence:
    """A text as the middle of a sentence: its first word without capital, where it is no abbreviation."""
    first, *rest = text.parts if isinstance(text, Sentence) else (text,)
    if not isinstance(first, str) or not first[1:2].islower():
        return Sentence((first, *rest))
    return Sentence((first[:1].lower() + first[1:], *rest))


def drop_stop(text: str) -> Sentence:
    """A sentence as a clause."""
    *others, last = join((text,)).parts or ("",)
    return Sentence((*others, last.rstrip(". "))) if isinstance(last, str) else join((text,))


def percent(ratio: float | None) -> Amount:
    """A share: ``41 %``."""
    return Amount(value=ratio, quantity=Quantity.RATIO)


def count(value: float | None, noun: str = "") -> Amount:
    """A count: ``1,200 samples``.

    >>> str(count(1, "block")), str(count(1200, "block")), str(count(None, "block"))
    ('1 block', '1,200 blocks', '– blocks')
    """
    return Amount(value=value, quantity=Quantity.COUNT, noun=noun)


def number(value: float | None, noun: str = "") -> Amount:
    """A number that need not be whole: ``2.5``."""
    return Amount(value=value, quantity=Quantity.NUMBER, noun=noun)


def factor(value: float | None) -> Amount:
    """A factor: ``1.39×``."""
    return Amount(value=value, quantity=Quantity.FACTOR)


def cycles(value: float | None) -> Amount:
    """A number of cycles: ``431 cycles``."""
    return Amount(value=value, quantity=Quantity.CYCLES)


def size(size_bytes: float | None) -> Amount:
    """An amount of memory: ``48 KiB``."""
    return Amount(value=size_bytes, quantity=Quantity.BYTES)


def update_bytes(bytes_per_update: float) -> Amount:
    """The bytes that one update of a grid moves: ``12.2 bytes``."""
    return Amount(value=bytes_per_update, quantity=Quantity.BYTES_PER_UPDATE)


def duration(duration_ns: float | None) -> Amount:
    """A time: ``6.19 ms``."""
    return Amount(value=duration_ns, quantity=Quantity.NS)


@lru_cache(maxsize=4096)
def _split_template(template: str) -> tuple[tuple[tuple[str, str | None], ...], frozenset[str]]:
    """Words, each with the name of the value behind it; and all names."""
    pieces = []
    for words, name, form, conversion in Formatter().parse(template):
        if form or conversion:
            raise ValueError(f"{template!r} formats {name} itself")
        pieces.append((words, name))
    return tuple(pieces), frozenset(name for _, name in pieces if name is not None)


def _merge_words(parts: Iterable[Part]) -> Iterator[Part]:
    """Parts without empty words, and words that follow each other as one plain text."""
    words = ""
    for part in parts:
        if isinstance(part, str):
            words += part
            continue
        if words:
            yield words
        words = ""
        yield part
    if words:
        yield words


NOTHING = Sentence()  # Where there is nothing to say
