"""Dialog for the sizes of a launch: the guesses of a description as default answer, and the answer parsed."""

import re
from collections.abc import Collection, Iterable, Iterator

from gpa_lsp.code.sources.host_values import HostLaunch
from gpa_lsp.execution.launches.template import DERIVED, TOLD, ToldSizes
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.prose import list_of

THREADS = "threads"  # Names the threads of the launch in an answer; every other name is a variable or a parameter
_MOST_EXTENTS = 3
_INPUTS = re.compile(r"^# Guessed: (.*); grid, sizes and numbers", re.MULTILINE)
_INPUT = re.compile(r"(?P<source>[^=]*?)(?: \((?P<variable>\w+)\))? = (?P<value>\d[\d.e+-]*)(?:, | and |$)")
_NUMBER = re.compile(
    r'\{ name = "(?P<name>\w+)", type = "[^"]*", value = (?P<value>-?\d+|"[^"]*")[ ,}].*$', re.MULTILINE
)
_COVERED = re.compile(r"^threads = (?P<value>\d+|\[[\d, ]+\])", re.MULTILINE)
_ANSWER = re.compile(r"\s*(?P<name>\w[\w.\[\]>-]*)\s*=\s*(?P<value>-?\d+(?:\s*[x×]\s*\d+)*)\s*", re.IGNORECASE)
_TIMES = re.compile(r"\s*[x×]\s*", re.IGNORECASE)


def list_guessed_sizes(text: str) -> tuple[tuple[str, str], ...]:
    r"""Numbers that a description guesses: host inputs, threads, and integers of the kernel, each with its value.

    >>> shape = 'block = 256\nthreads = [1024, 512]  # guess\n'
    >>> list_guessed_sizes(shape + '{ name = "n", type = "int", value = 16 },\n{ name = "k", type = "int", value = 3 },  # line 7')
    (('threads', '1024x512'), ('n', '16'))
    >>> list_guessed_sizes("# Guessed: argv[1] (n) = 64; grid, sizes and numbers follow from that.\n" * 2)  # of two kernels
    (('n', '64'),)
    >>> list_guessed_sizes("# Guessed: width = 64, tolerance = 1.0 and argv[1] (n) = 32; grid, sizes and numbers follow from that.")
    (('width', '64'), ('n', '32'))
    """
    return tuple(dict.fromkeys(_find_guessed(text)))


def _find_guessed(text: str) -> Iterator[tuple[str, str]]:
    for read in _INPUTS.finditer(text):
        for one in _INPUT.finditer(read[1]):
            if one["value"].isdecimal():  # others are no sizes
                yield one["variable"] or one["source"], one["value"]
    covered = _COVERED.search(text)
    if covered is not None and not any(word in text[covered.end() :].partition("\n")[0] for word in TOLD):
        yield THREADS, "x".join(re.findall(r"\d+", covered["value"]))
    for number in _NUMBER.finditer(text):
        if number["value"].isdecimal() and not any(word in number[0] for word in (*TOLD, DERIVED)):
            yield number["name"], number["value"]


def describe_sizes(sizes: Collection[tuple[str, str]]) -> str:
    """Sizes as :func:`read_told_sizes` reads them.

    >>> describe_sizes([("n", "16"), ("threads", "1024x512")])
    'n = 16, threads = 1024x512'
    """
    return ", ".join(f"{name} = {value}" for name, value in sizes)


def read_told_sizes(text: str) -> ToldSizes:
    """Parse an answer: numbers by name, and threads.

    Raises:
        InputError: it cannot be read.

    >>> read_told_sizes("n = 4096, threads=64x32")
    ToldSizes(numbers={'n': 4096}, threads=(64, 32))
    """
    numbers: dict[str, int] = {}
    threads: tuple[int, ...] = ()
    for part in filter(str.strip, text.split(",")):
        found = _ANSWER.fullmatch(part)
        values = [] if found is None else [int(one) for one in _TIMES.split(found["value"])]
        is_covered = found is not None and found["name"] == THREADS and len(values) <= _MOST_EXTENTS and min(values) > 0
        if found is None or not (is_covered or (len(values) == 1 and found["name"] != THREADS)):
            remedy = "write them as n = 4096, threads = 1024x1024"
            raise InputError(f"“{part.strip()}” is no size", remedy=remedy)
        if is_covered:
            threads = tuple(values)
        else:
            numbers[found["name"]] = values[0]
    return ToldSizes(numbers=numbers, threads=threads)


def check_told_sizes(told: ToldSizes, text: str, launches: Iterable[HostLaunch]) -> None:
    """Refuse sizes that the description does not have.

    Args:
        text: the description made with it.
        launches: what the host code says where nothing is told.

    Raises:
        InputError: no number has that name, or the grid follows from the host code.
    """
    read = (_INPUT.fullmatch(f"{source} = 0") for one in launches for source, _ in one.inputs)
    known = [
        *(one["variable"] or one["source"] for one in read if one),
        *(one["name"] for one in _NUMBER.finditer(text)),
    ]
    unknown = [name for name in told.numbers if name not in known]
    has_threads = _COVERED.search(text) is not None
    if unknown or (told.threads and not has_threads):
        listed = list_of(dict.fromkeys([*known, *([THREADS] if has_threads else [])]))
        raise InputError(f"no size is called {list_of(unknown or [THREADS])}", remedy=f"there are {listed}")
