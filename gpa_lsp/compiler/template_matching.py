"""Template parameters from the types of what is passed, for the plain shapes that kernels take (``T``, ``T*``, ``const T*``, ``S<T>``)."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.sources.trees import read_text

if TYPE_CHECKING:
    from tree_sitter import Node

_QUALIFIERS = re.compile(
    r"\b(?:const|volatile|struct|typename|__restrict__|__restrict|restrict|__grid_constant__|register)\b"
)
_NAME_AT_END = re.compile(r"(?<=[\s*&>])[A-Za-z_]\w*\s*(?:\[\s*\w*\s*\])?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateParameter:
    """One parameter of a template.

    Attributes:
        name: of it.
        default: as written; None when there is none.
        is_type: it stands for a type and not for a value.
    """

    name: str
    default: str | None
    is_type: bool


def read_template_parameters(template: "Node") -> tuple[TemplateParameter, ...] | None:
    """The parameters of a ``template_declaration``; None where one has no name or is a pack."""
    found = []
    parameters = template.child_by_field_name("parameters")
    for node in parameters.named_children if parameters is not None else ():
        if node.type == "comment":
            continue
        text = " ".join(read_text(node).split())
        head, has_default, default = text.partition("=")
        words = re.findall(r"\w+", head)
        if "..." in text or len(words) < 2:
            return None
        is_type = words[0] in ("class", "typename")
        found.append(
            TemplateParameter(name=words[-1], default=default.strip() if has_default else None, is_type=is_type)
        )
    return tuple(found)


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

    >>> T, N = TemplateParameter(name="T", default=None, is_type=True), TemplateParameter(name="N", default="4", is_type=False)
    >>> match_parameters([T, N], ["const T* __restrict__ x", "int n"], ["float*", "int"])
    ('float',)
    >>> match_parameters([T], ["T x"], [None]) is None
    True
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
    arguments: list[str] = []
    for one in parameters:
        if one.name in bound:
            arguments.append(bound[one.name])
        elif one.default is not None:
            break
        else:
            return None
    return tuple(arguments)


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
