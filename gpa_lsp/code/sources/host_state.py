"""What names hold at one moment of a walk through host code, to go back to, or to find what has changed since."""

from collections.abc import Iterable

from gpa_lsp.code.sources.host_values import Array, Record, Scope, Value


class Snapshot:
    """The contents of some scopes, and of the arrays and structures in them, as they are now.

    >>> scope = Scope(values={"n": 1, "m": 2})
    >>> before = Snapshot([scope])
    >>> scope.values["n"] = 3
    >>> before.forget_changes()
    >>> scope.values
    {'n': None, 'm': 2}
    """

    def __init__(self, scopes: Iterable[Scope]) -> None:
        self._holders: list[tuple[dict[str, Value], dict[str, Value]]] = []
        self._sizes: list[tuple[Array, int | None]] = []
        seen: set[int] = set()
        pending: list[dict[str, Value]] = [one.values for one in scopes]
        while pending:
            holder = pending.pop()
            if id(holder) in seen:
                continue
            seen.add(id(holder))
            self._holders.append((holder, dict(holder)))
            for value in holder.values():
                if isinstance(value, (Array, Record)):
                    pending.append(value.elements)
                if isinstance(value, Array):
                    self._sizes.append((value, value.size_bytes))

    def list_grown(self) -> list[tuple[Array, int, int]]:
        """Arrays that were there then and have another size now, with the bytes they had and those they have."""
        return [
            (array, size, array.size_bytes)
            for array, size in self._sizes
            if size is not None and array.size_bytes is not None and array.size_bytes != size
        ]

    def go_back(self) -> None:
        """Everything is as it was."""
        for holder, then in self._holders:
            holder.clear()
            holder.update(then)
        for array, size in self._sizes:
            array.size_bytes = size

    def merge(self) -> None:
        """What was different then is not known now."""
        self._blur(keeps_new=False)

    def forget_changes(self) -> None:
        """What has changed since is not known now; arrays that were allocated since are."""
        self._blur(keeps_new=True)

    def _blur(self, *, keeps_new: bool) -> None:
        for holder, then in self._holders:
            for name, value in list(holder.items()):
                if name not in then:
                    holder[name] = value if keeps_new and isinstance(value, Array) else None
                elif not _is_same(then[name], value, keeps_new=keeps_new):
                    holder[name] = None
            for name in then.keys() - holder.keys():
                holder[name] = None
        for array, size in self._sizes:
            if array.size_bytes != size:
                array.size_bytes = None


def _is_same(then: Value, now: Value, *, keeps_new: bool) -> bool:
    if isinstance(then, Array) and isinstance(now, Array):
        return then is now or (then.size_bytes is not None and then.size_bytes == now.size_bytes)
    if isinstance(now, Array):
        return keeps_new
    return then is now or (not isinstance(then, Array) and not isinstance(now, Record) and then == now)
