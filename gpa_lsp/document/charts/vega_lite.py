"""Building blocks of Vega-Lite specifications."""

from typing import Any

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"  # The name of the language, which nothing loads

Spec = dict[str, Any]  # A specification, or a part of one


def quantitative(field: str, **more: Any) -> Spec:
    """The encoding of a column of numbers."""
    return {"field": field, "type": "quantitative", **more}


def nominal(field: str, **more: Any) -> Spec:
    """The encoding of a column of words."""
    return {"field": field, "type": "nominal", **more}


def tell(*columns: str | tuple[str, str]) -> list[Spec]:
    """A tooltip of some columns, each with a title where that differs from its name."""
    pairs = [(column, column) if isinstance(column, str) else column for column in columns]
    return [nominal(field, title=title) for field, title in pairs]


def either(test: str, value: Any, otherwise: Any) -> Spec:
    """The encoding of a value by a condition."""
    return {"condition": {"test": test, "value": value}, "value": otherwise}


def calculate(name: str, expression: str) -> Spec:
    """A new column."""
    return {"calculate": expression, "as": name}


def reduce(operation: str, field: str, name: str) -> Spec:
    """One figure of a column, for transforms that aggregate."""
    return {"op": operation, "field": field, "as": name}


def layer(data: str, mark: str, looks: Spec, encoding: Spec, *transforms: Spec) -> Spec:
    """A layer that draws a named data set, after transforming it."""
    made = {"data": {"name": data}, "mark": {"type": mark, **looks}, "encoding": encoding}
    return {**made, "transform": list(transforms)} if transforms else made
