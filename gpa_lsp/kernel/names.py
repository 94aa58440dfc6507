"""Names of functions for people: demangled, and short enough for one line.

A kernel of a template library may have a name of two thousand characters, of which a reader needs the function's own; the whole name stays in the
report next to the short one.

Kernels of one *family* are one kernel to the person who edits them: template arguments, types and counters are parts of a linkage name, and
compilers of directives put the directive's line into it.
"""

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath, PureWindowsPath
from typing import TypeVar

from msgspec import Struct

from gpa_lsp.code.binary.linkage_names import demangle

__all__ = [
    "SHORT_NAME_CHARS",
    "choose_by_name",
    "demangle",
    "find_plain_name",
    "list_named",
    "shorten_distinctly",
    "shorten_name",
]

Named = TypeVar("Named")

SHORT_NAME_CHARS = 60  # Longest name that is shown with its template arguments

_LONGEST_NAME = 50_000  # No compiler makes longer ones; the rest of a handmade one is ignored

_ABI_TAG = re.compile(r"\[abi:[^\]]*\]")
_NUMBER = re.compile(r"#(\d+)\b")  # behind names that are alike, see shorten_distinctly
_ANONYMOUS = re.compile(r"(?:\(anonymous namespace\)|<unnamed>|\{anonymous\})::")
_OPERATOR = re.compile(r"operator(?:\(\)|<=>|<<=|>>=|->\*|<<|>>|<=|>=|->|<|>)")
_OPERATOR_END = re.compile(r"operator\W{0,3}$")
_CONSTANT = re.compile(
    r"(?<=[<, ])\((bool|int|unsigned int|long|unsigned long|long long|unsigned long long)\)(-?\d+)(?=[,>])"
)
# Of constants in template arguments, by their type, as LLVM writes them; NVIDIA writes casts
_SUFFIXES = {
    "int": "",
    "unsigned int": "u",
    "long": "l",
    "unsigned long": "ul",
    "long long": "ll",
    "unsigned long long": "ull",
}

_OPENING = "<([{"
_CLOSING = ">)]}"


@functools.lru_cache(maxsize=4096)
def shorten_name(name: str, max_chars: int = SHORT_NAME_CHARS) -> str:
    """A readable name without return type and parameters; where it is still long, without template arguments and then without namespaces.

    Args:
        name: demangled, in LLVM's or NVIDIA's spelling, or any other name.
        max_chars: at least 8.

    Returns:
        At most ``max_chars`` characters.

    >>> shorten_name("void scale<float>(float *, int)")
    'scale<float>'
    >>> shorten_name("void lib::Kernel<lib::Gemm<lib::Shape<64, 64>>>(T1::Params)", 20)
    'lib::Kernel<…>'
    >>> shorten_name("void gemm<(int)128, (unsigned int)8, (bool)0>(float *)")
    'gemm<128, 8u, false>'
    """
    plain = _ANONYMOUS.sub("", _ABI_TAG.sub("", name[:_LONGEST_NAME])).strip()
    kept = _CONSTANT.sub(_write_constant, _drop_return_type(_drop_parameters(plain)))
    if len(kept) > max_chars:
        kept = _collapse_templates(kept)
    if len(kept) > max_chars and "::" in kept:
        kept = "…::" + kept.rsplit("::", 1)[1]
    return kept if len(kept) <= max_chars else kept[: max_chars - 1] + "…"


def _write_constant(found: re.Match[str]) -> str:
    kind, value = found.groups()
    if kind == "bool":
        return "true" if int(value) else "false"
    return f"{value}{_SUFFIXES[kind]}"


def shorten_distinctly(names: Iterable[str], max_chars: int = SHORT_NAME_CHARS) -> dict[str, str]:
    """Short names that stay different where the names are: alike ones are numbered in the order given.

    >>> shorten_distinctly(["void f<int>(int)", "void f<long>(long)", "void g(int)"], 5)["void f<long>(long)"]
    'f<…>#2'
    """
    distinct = list(dict.fromkeys(names))
    short = {name: shorten_name(name, max_chars) for name in distinct}
    times = Counter(short.values())
    seen: Counter[str] = Counter()
    for name in distinct:
        alike = short[name]
        if times[alike] > 1:
            seen[alike] += 1
            short[name] = f"{alike}#{seen[alike]}"
    return short


def explain_number(short: str) -> str:
    """Explanation of the number behind a short name; empty for a name without one.

    >>> explain_number("f<…>#2"), explain_number("f")
    ('#2 is to tell it from others that are called f<…>', '')
    """
    found = _NUMBER.search(short)
    return f"#{found[1]} is to tell it from others that are called {short[: found.start()]}" if found else ""


def list_named(text: str, among: Iterable[Named], list_names: Callable[[Named], Iterable[str]]) -> list[Named]:
    """The objects that a user means by ``text``: a whole name wins over a part of one.

    Args:
        text: a name as it stands in the code, readable, short (as it is shown) or without its template arguments, or else a part of a name.
        among: what has names.
        list_names: all names of one of them, mangled or not.

    Returns:
        In the order given: those of which it is the whole name, readable or short; else those of which it is the plain name; else those in whose
        names it occurs.

    >>> kernels = ["_Z5star4Pd", "_Z8star4_2zPd", "_Z5scaleIfEvPf", "_Z5scaleIiEvPi", "_Z7rescalePf"]
    >>> [list_named(text, kernels, lambda name: [name]) for text in ("star4", "scale", "scale<int>")]
    [['_Z5star4Pd'], ['_Z5scaleIfEvPf', '_Z5scaleIiEvPi'], ['_Z5scaleIiEvPi']]
    >>> list_named("star", kernels, lambda name: [name])
    ['_Z5star4Pd', '_Z8star4_2zPd']
    """
    every = list(among)
    forms = [[form for name in list_names(one) for form in _list_forms(name)] for one in every]
    whole = [one for one, known in zip(every, forms, strict=True) if text in known]
    if whole:
        return whole
    plain = [
        one for one, known in zip(every, forms, strict=True) if any(text == find_plain_name(form) for form in known)
    ]
    return plain or [one for one, known in zip(every, forms, strict=True) if any(text in form for form in known)]


def choose_by_name(text: str | None) -> Callable[[Iterable[str]], list[str]] | None:
    """A filter of mangled names by :func:`list_named`; None without a text, for no filter.

    >>> choose = choose_by_name("scale")
    >>> choose and choose(["_Z5scaleIfEvPf", "_Z7rescalePf"])
    ['_Z5scaleIfEvPf']
    """
    return None if text is None else functools.partial(list_named, text, list_names=lambda name: (name,))


def _list_forms(name: str) -> tuple[str, str, str]:
    """A name as it is, readable, and short."""
    readable = demangle(name)
    return name, readable, shorten_name(readable)


def _mask_operators(text: str) -> str:
    """The text with the brackets of operator names replaced, so that brackets pair up; same length."""
    return _OPERATOR.sub(lambda found: "o" * len(found.group()), text)


def _depths(text: str) -> list[int]:
    """Bracket depth before each character; arrows and unpaired closing brackets do not count."""
    depth = 0
    depths = []
    for position, character in enumerate(_mask_operators(text)):
        depths.append(depth)
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING and depth and not (character == ">" and text[position - 1] == "-"):
            depth -= 1
    return depths


def _drop_parameters(text: str) -> str:
    masked, depths = _mask_operators(text), _depths(text)
    for position, character in enumerate(masked):
        if character == "(" and depths[position] == 0 and position > 0:
            return text[:position].rstrip()
    return text


def _drop_return_type(text: str) -> str:
    depths = _depths(text)
    for position in range(len(text) - 1, -1, -1):
        if (
            text[position] == " "
            and depths[position] == 0
            and not _OPERATOR_END.search(text, max(0, position - 16), position)
        ):
            return text[position + 1 :].lstrip("*&")
    return text


def _collapse_templates(text: str) -> str:
    masked, depths = _mask_operators(text), _depths(text)
    kept = []
    for position, character in enumerate(masked):
        if depths[position] == 0:
            kept.append("<…>" if character == "<" else text[position])
    return "".join(kept)


def find_plain_name(readable_name: str) -> str:
    """A function's own name without result, namespaces, template arguments and parameters.

    >>> find_plain_name("void ns::scale<(int)3, std::pair<int, int>>(float*, int)")
    'scale'
    >>> find_plain_name("_silu_kernel")
    '_silu_kernel'
    """
    whole = shorten_name(readable_name, max_chars=len(readable_name) + 8)
    return whole.partition("<")[0].rpartition("::")[2]


# Names that hold the line of a directive. Source of the last one: LLVM, ``TargetRegionEntryInfo::getTargetRegionEntryFnName``.
_LINE_NAMES = (
    re.compile(
        r"(?P<stem>.+)_(?P<line>\d+)_gpu(?P<rest>\w*)"
    ),  # OpenACC of NVIDIA's HPC compilers, seen in real profiles
    re.compile(r"nvkernel_(?P<stem>.+)_F\d+L(?P<line>\d+)_(?P<rest>\d+_?)"),  # their OpenMP
    re.compile(r"__omp_offloading_[0-9a-f]+_[0-9a-f]+_(?P<stem>.+)_l(?P<line>\d+)(?P<rest>(?:_\d+)?)"),  # LLVM's
)

# Names that end in a counter of the compiler's session: Julia's, and Numba's of old
_COUNTED_NAMES = (re.compile(r"julia_(?P<stem>.+)_\d+"), re.compile(r"(?P<stem>.+)\$\d+"))

# Files in which people name kernels themselves; a number in a name is no line there
_KERNEL_LANGUAGES = frozenset({".cu", ".cuh", ".cuf", ".py", ".jl", ".hip"})


class KernelFamily(Struct, frozen=True, kw_only=True):
    """The part of a kernel's name that its family shares."""

    name: str  # the same for all its members
    # of the directive it was compiled from; None where the name does not hold it. Members of a family with lines are different kernels.
    line: int | None


def find_family(readable_name: str, file: str | None) -> KernelFamily:
    """The family of a kernel.

    Args:
        readable_name: demangled.
        file: the source it is in; None when unknown.

    >>> find_family("void scale<float, 64>(float*)", "k.cu").name
    'scale'
    >>> find_family("smooth_x_279_gpu", "weather.F90")
    KernelFamily(name='smooth_x', line=279)
    >>> find_family("conv_3_gpu", "conv.cu"), find_family("julia_bb_4477", "bb.jl").name
    (KernelFamily(name='conv_3_gpu', line=None), 'bb')
    """
    base = shorten_name(readable_name).partition("<")[0]
    for pattern in _COUNTED_NAMES:
        counted = pattern.fullmatch(base)
        if counted is not None:
            return KernelFamily(name=counted["stem"], line=None)
    if file is None or _find_suffix(file) in _KERNEL_LANGUAGES:
        return KernelFamily(name=base, line=None)
    for pattern in _LINE_NAMES:
        found = pattern.fullmatch(readable_name)
        if found is not None:
            return KernelFamily(name=found["stem"] + found["rest"], line=int(found["line"]))
    return KernelFamily(name=base, line=None)


def _find_suffix(file: str) -> str:
    kind = PureWindowsPath if "\\" in file else PurePosixPath
    return kind(file).suffix.lower()
