"""What can be said of a kernel by its code alone: each file defines ``STATIC_CHECK``. Adding a file adds a check.

A check says what it is certain of, or says that it is not. Where a kernel was measured its advice is better, because that knows what costs
time; then checks are not asked.
"""

from collections.abc import Callable, Iterable

from gpa_lsp.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.basis.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticCheck:
    """One kind of finding.

    Attributes:
        name: in kebab case, the module's name with hyphens: what editors and SARIF show as the code of the finding.
        title: a few words for people.
        find: the findings of a kernel, in any order.
    """

    name: str
    title: str
    find: Callable[[StaticFacts], Iterable[StaticFinding]]
