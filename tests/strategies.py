"""Hypothesis' strategies for records, made of their fields: the type says what a value is, the end of the name its range."""

from collections.abc import Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from msgspec import Struct

TEXTS = st.text(max_size=8)
COUNTS = st.integers(0, 1 << 40)
AMOUNTS = st.floats(0, 1e15)
_PLAIN = {bool: st.booleans(), int: COUNTS, float: AMOUNTS, NoneType: st.none()}

Known = Mapping[Any, st.SearchStrategy[Any]]


def records(kind: type[Struct], known: Known = {}, **fixed: Any) -> st.SearchStrategy[Any]:  # noqa: B006
    """Any record of a kind; ``fixed`` are strategies (or values) of its fields, ``known`` of types and of fields of any record inside."""
    hints = get_type_hints(kind)
    chosen = {
        name: fixed[name] if name in fixed else values(hints[name], known, name) for name in kind.__struct_fields__
    }
    is_strategy = st.SearchStrategy
    return st.builds(
        kind, **{name: one if isinstance(one, is_strategy) else st.just(one) for name, one in chosen.items()}
    )


def values(hint: Any, known: Known, name: str = "") -> st.SearchStrategy[Any]:
    """Any value of a type; ``name`` is that of its field."""
    origin, parts = get_origin(hint), get_args(hint)
    if name in known or hint in known:
        return known[name if name in known else hint]
    if origin in (Union, UnionType):
        return st.one_of(*(values(part, known, name) for part in sorted(parts, key=lambda part: part is not NoneType)))
    if origin is tuple:
        if parts[1:] == (...,):
            return st.lists(values(parts[0], known), max_size=2).map(tuple)
        return st.tuples(*(values(part, known) for part in parts))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(values(parts[0], known), values(parts[1], known), max_size=3)
    return _plain_values(hint, known, name)


def _plain_values(hint: type, known: Known, name: str) -> st.SearchStrategy[Any]:
    if hint is float and name.endswith("ratio"):
        return st.floats(0, 1)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if issubclass(hint, Enum):
        return st.sampled_from(hint)
    return TEXTS if issubclass(hint, str) else records(hint, known)
