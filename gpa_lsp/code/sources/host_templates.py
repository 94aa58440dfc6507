"""What parameters of templates stand for in a walk through host code: :class:`TemplateEvaluation`; and one walk through a function."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from gpa_lsp.code.sources.cuda_functions import find_function_declarator
from gpa_lsp.code.sources.host_evaluation import Evaluation
from gpa_lsp.code.sources.host_syntax import OWN_ARRAY, lay_out_structures, parse_expression, strip_casts
from gpa_lsp.code.sources.host_text import HostText
from gpa_lsp.code.sources.host_values import Record, Scope, Value, read_name
from gpa_lsp.code.sources.template_arguments import (
    find_kernel_templates,
    find_type_names,
    list_given,
    list_template_parameters,
    spell_type,
)
from gpa_lsp.code.sources.template_matching import bind_types
from gpa_lsp.code.sources.trees import SourceTree, read_text

if TYPE_CHECKING:
    from tree_sitter import Node

WHOLE = re.compile(r"-?\d+")


class Passage(Struct):
    """One walk through a function."""

    numbers: Mapping[str, Value] = field(default_factory=dict)  # that parameters of its template stand for
    # values of variables that a switch asks for, against what the text says
    assumed: dict[str, Value] = field(default_factory=dict)
    # variable and value of cases that were not gone through, and whether the text says that they are not
    others: list[tuple[str, Value, bool]] = field(default_factory=list)
    this: Record | None = None  # the object that a method is called for; None for functions


class TemplateEvaluation(Evaluation):
    """Values of expressions, and arguments of templates."""

    def __init__(self, tree: SourceTree, host: HostText) -> None:
        super().__init__(host, lay_out_structures(tree, host.macros))
        self._templates = find_kernel_templates(tree)
        self._type_names = find_type_names(tree)

    def bind_template(
        self, given: Sequence[str], function: "Node", scope: Scope, nodes: "Sequence[Node]"
    ) -> dict[str, str]:
        """What a template's parameters stand for in a call, where they are named or follow from ``T``, ``T *`` or ``vector<T>``."""
        parameters = list_template_parameters(function)
        bound = {one.name: self._resolve(text, scope) for one, text in zip(parameters, given, strict=False)}
        declarator = find_function_declarator(function) if parameters else None
        formal = None if declarator is None else declarator.child_by_field_name("parameters")
        listed = [] if formal is None else [one for one in formal.named_children if "parameter" in one.type]
        types = [self._find_passed_type(node, scope) for node in nodes]
        told = bind_types(parameters, [read_text(one) for one in listed], types) or {}
        for name, text in told.items():
            bound.setdefault(name, self._resolve(text, scope))
        for one in parameters:
            if one.default and one.name not in bound:
                bound[one.name] = self._resolve(one.default, scope)
        return bound

    def _find_passed_type(self, node: "Node", scope: Scope) -> str | None:
        """As a variable was declared; None for any other expression."""
        declared = scope.read_type(read_name(strip_casts(node)))
        return None if declared is None else declared.removesuffix(OWN_ARRAY)

    def _resolve(self, text: str, scope: Scope) -> str:
        """A template argument with what the names in it stand for: a type, a number, or as it is."""
        text = self._parameters.get(text, text)
        spelled = spell_type(text, self._type_names)
        if spelled is not None:
            return spelled
        value = self.value(parse_expression(text), scope)
        return str(int(value)) if isinstance(value, (int, float)) and int(value) == value else text

    def read_template_arguments(
        self, callee: "Node | None", name: str, scope: Scope, nodes: "Sequence[Node]"
    ) -> tuple[str | None, ...]:
        """Of a launch, None for each that is not known."""
        given, kernel = list_given(callee), self._templates.get(name)
        if kernel is None:
            told = [self._resolve(text, scope) for text in given]
        else:
            bound = self.bind_template(given, kernel, scope, nodes)
            told = [bound.get(one.name, "") for one in list_template_parameters(kernel)]
        return tuple(one if spell_type(one, self._type_names) or WHOLE.fullmatch(one) else None for one in told)
