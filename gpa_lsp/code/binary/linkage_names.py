"""Linkage names and what they stand for: the one place that demangles.

A name is taken for a mangled one only where it begins as such names do. The demangler also reads the codes of types by themselves, so that a kernel
``extern "C" f`` would come out as ``float``.
"""

import functools
import re

# Itanium, with the underscores that Mach-O and blocks put in front, Rust, and Microsoft. Source: Itanium C++ ABI 5.1.2; LLVM, ``llvm::demangle``;
# Rust RFC 2603.
_MANGLED = ("_Z", "__Z", "___Z", "____Z", "_R", "?")

_START = re.compile("_Z(N[rVK]*[RO]?)?")  # of names of functions; those within namespaces and classes have the group
_LENGTH = re.compile(r"L?([1-9]\d{0,4})")  # of a part of a name


@functools.lru_cache(maxsize=4096)
def demangle(name: str) -> str:
    """The readable form of a linkage name of C++ (Itanium or Microsoft) or Rust; any other name as it is.

    Of a local function inside another's section (``$kernel$function``, ``$__internal_0_$function``) it is the function's own name.

    >>> demangle("_Z5scaleIfEvPT_"), demangle("main"), demangle("$__internal_0_$__cuda_sm20_div_f64")
    ('void scale<float>(float*)', 'main', '__cuda_sm20_div_f64')
    >>> demangle("f"), demangle("Pf"), demangle("i")
    ('f', 'Pf', 'i')
    """
    if name.startswith("$") and not name.endswith("$"):
        name = name.rsplit("$", 1)[1]
    if not name.startswith(_MANGLED):
        return name
    try:
        from pycxxfilt import demangle as demangle_with_llvm  # loaded late: reports whose names are plain do without it
    except ImportError:
        return name
    try:
        return demangle_with_llvm(name) or name
    except (ValueError, UnicodeError):
        return name  # a name with a NUL or a lone surrogate in it is no linkage name


def find_bare_name(mangled: str) -> str:
    """The function's own name in a mangled one, without namespaces, parameters and arguments of templates; other names as they are.

    >>> find_bare_name("_ZN3two4halfIfEEvPT_"), find_bare_name("_ZL5saxpyifPKfPf"), find_bare_name("plain")
    ('half', 'saxpy', 'plain')
    """
    parts = _list_parts(mangled)
    return parts[-1] if parts else mangled


def read_function_name(symbol: str) -> str:
    """The plain name in a symbol, namespaces included, parameters and template arguments left out; the symbol itself where there is none.

    >>> read_function_name("$kernel$_Z5blendfff"), read_function_name("_ZN3lib4math5limitEff"), read_function_name("my_function")
    ('blend', 'lib::math::limit', 'my_function')
    """
    name = symbol.rpartition("$")[2].partition("@")[0]
    return "::".join(_list_parts(name)) or name or symbol


def _list_parts(mangled: str) -> list[str]:
    """Namespaces and own name of a function, in order; empty for names of other kinds.

    Source: Itanium C++ ABI, section 5.1 (names); compilers put an ``L`` before names of internal linkage.
    """
    start = _START.match(mangled)
    place = 0 if start is None else start.end()
    parts: list[str] = []
    while start is not None and (length := _LENGTH.match(mangled, place)):
        place = length.end() + int(length[1])
        parts.append(mangled[length.end() : place])
        if not start[1]:
            break
    return parts
