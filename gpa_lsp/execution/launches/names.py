"""What names in a launch's expressions stand for: constants, scalars, block and grid, in whatever order they are written."""

import difflib
from collections.abc import Callable

from msgspec import Struct, field

from gpa_lsp.execution.launches.expressions import Number
from gpa_lsp.foundation.errors import InputError

_DEEPEST = 50


class Names(Struct):
    """Names and how to find their values. A value is found when it is first asked for, so that names may be used before they are given."""

    sources: dict[str, Callable[[], Number]] = field(default_factory=dict)  # name → what gives its value
    values: dict[str, Number] = field(default_factory=dict)  # those that were found
    _asked: list[str] = field(default_factory=list)

    def add(self, name: str, source: Callable[[], Number]) -> None:
        """Give a name a meaning; a later one counts."""
        self.sources[name] = source
        self.values.pop(name, None)

    def find(self, name: str) -> Number:
        """The value of a name.

        Raises:
            InputError: there is no such name, it depends on itself, or on too many others.
        """
        if name in self.values:
            return self.values[name]
        source = self.sources.get(name)
        if source is None:
            near = difflib.get_close_matches(name[:60], self.sources, n=1)
            remedy = f"did you mean {near[0]!r}?" if near else "give it under constants, or as a scalar argument"
            raise InputError(f"{name[:60]!r} is not defined", remedy=remedy)
        if name in self._asked or len(self._asked) >= _DEEPEST:
            chain = " → ".join((*self._asked[-5:], name))
            raise InputError(
                f"a number depends on itself, or on too many others: {chain}", remedy="give one of them as a number"
            )
        self._asked.append(name)
        try:
            self.values[name] = source()
        finally:
            self._asked.pop()
        return self.values[name]
