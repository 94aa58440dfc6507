"""Template parameters from the types of what is passed, for the plain shapes that kernels take (``T``, ``T*``, ``const T*``, ``S<T>``)."""

import re
from collections.abc import Sequence

from gpa_lsp.code.sources.template_arguments import TemplateParameter

_QUALIFIERS = re.compile(
    r"\b(?:const|volatile|struct|typename|__restrict__|__restrict|restrict|__grid_constant__|register)\b"
)
_NAME_AT_END = re.compile(r"(?<=[\s*&>])[A-Za-z_]\w*\s*(?:\[\s*\w*\s*\])?$")


def match_parameters(
    parameters: Sequence[TemplateParameter], formal: Sequence[str], types: Sequence[str | None]
) -> tuple[str, ...] | None:
    """The template arguments that follow from what is passed.

    Args:
        parameters: of the template.
        formal: the function's parameters, as written.
        types: of what is passed; None where unknown.

    Returns:
        One text per template parameter, without those at the end that have defaults; None where one cannot be told.

    >>> T, N = TemplateParameter(name="T", default="", is_type=True), TemplateParameter(name="N", default="4", is_type=False)
    >>> match_parameters([T, N], ["const T* __restrict__ x", "int n"], ["float*", "int"])
    ('float',)
    >>> match_parameters([T], ["T x"], [None]) is None
    True
    """
    bound = bind_types(parameters, formal, types)
    if bound is None:
        return None
    arguments: list[str] = []
    for one in parameters:
        if one.name in bound:
            arguments.append(bound[one.name])
        elif one.default:
            break
        else:
            return None
    return tuple(arguments)


def bind_types(
    parameters: Sequence[TemplateParameter], formal: Sequence[str], types: Sequence[str | None]
) -> dict[str, str] | None:
    """What type parameters stand for, by name, where it follows; None where it contradicts itself.

    Args:
        types: of the arguments, in order; None for one that is not known.
    """
    bound: dict[str, str] = {}
    names = {one.name for one in parameters if one.is_type}
    for pattern, actual in zip(formal, types, strict=False):
        if actual is None:
            continue
        found = _unify(_strip(_NAME_AT_END.sub("", pattern.partition("=")[0].strip())), _strip(actual), names)
        for name, value in found.items():
            if bound.setdefault(name, value) != value:
                return None
    return bound


def _unify(pattern: str, actual: str, names: set[str]) -> dict[str, str]:
    """What the names in a pattern stand for; empty where the two do not fit or no name is in it.

    >>> _unify("T*", "float*", {"T"}), _unify("V<T>", "V<int>", {"T"}), _unify("int", "float", {"T"})
    ({'T': 'float'}, {'T': 'int'}, {})
    """
    found: list[str] = []

    def take(word: re.Match[str]) -> str:
        if word.group() not in names:
            return re.escape(word.group())
        if word.group() in found:
            return f"(?P={word.group()})"
        found.append(word.group())
        return f"(?P<{word.group()}>.{{1,200}}?)"

    expression = "".join(
        take(part) if part.group()[0].isalpha() or part.group()[0] == "_" else re.escape(part.group())
        for part in re.finditer(r"\w+|\W", pattern)
    )
    if not found or len(found) > 4:
        return {}
    matched = re.fullmatch(expression, actual)
    return {name: matched[name] for name in found} if matched is not None else {}


def _strip(text: str) -> str:
    """A type without qualifiers, references and blanks that say nothing.

    >>> _strip("const unsigned  int &"), _strip("T * __restrict__")
    ('unsigned int', 'T*')
    """
    plain = " ".join(_QUALIFIERS.sub(" ", text).replace("&", " ").split())
    return re.sub(r"\s*([*<>,\[\]])\s*", r"\1", plain)
