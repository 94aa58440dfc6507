"""Static checks of a kernel's code: each file defines ``STATIC_CHECK``. Adding a file adds a check.

A check says what it is certain of, or says that it is not. Where a kernel was measured its advice is better, because that knows what costs
time; then checks are not asked.
"""

from collections.abc import Callable, Iterable

from msgspec import Struct

from gpa_lsp.diagnosis.advice.static_model import StaticFacts, StaticFinding


class StaticCheck(Struct, frozen=True, kw_only=True):
    """One kind of finding."""

    name: str  # in kebab case, the module's name with hyphens: what editors and SARIF show as the code of the finding
    title: str  # a few words for people
    find: Callable[[StaticFacts], Iterable[StaticFinding]]  # the findings of a kernel, in any order
