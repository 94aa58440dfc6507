"""Linkage names and what they stand for: the one place that demangles.

A name is taken for a mangled one only where it begins as such names do. The demangler also reads the codes of types by themselves, so that a kernel
``extern "C" f`` would come out as ``float``.
"""

import functools
import re

# Itanium, with the underscores that Mach-O and blocks put in front, Rust, and Microsoft. Source: Itanium C++ ABI 5.1.2; LLVM, ``llvm::demangle``;
# Rust RFC 2603.
_MANGLED = ("_Z", "__Z", "___Z", "____Z", "_R", "?")

_LENGTH = re.compile(r"\d{1,5}")


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
        return name  # a name with a NUL or a lone surrogate in it is nobody's linkage name


def find_bare_name(mangled: str) -> str:
    """The function's own name in a mangled one, without namespaces, parameters and arguments of templates; other names as they are.

    Source: Itanium C++ ABI, section 5.1 (names).

    >>> find_bare_name("_ZN3two4halfIfEEvPT_"), find_bare_name("_Z5saxpyifPKfPf"), find_bare_name("plain")
    ('half', 'saxpy', 'plain')
    """
    if not mangled.startswith("_Z"):
        return mangled
    place = 3 if mangled[2:3] == "N" else 2
    found = ""
    while True:
        match = _LENGTH.match(mangled, place)
        if match is None:
            return found or mangled
        place = match.end() + int(match[0])
        found = mangled[match.end() : place]
        if mangled[2:3] != "N":
            return found
