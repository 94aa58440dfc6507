"""Turn what TOML holds into the type a figure needs, and nothing else into it: no 1 for true, no 3.0 for 3, no text for a list.

Each function raises TypeError or ValueError with a message that fits behind the name of the figure.

>>> to_cycles([4, "?"], 2)
(4, None)
"""


def to_int(value: object) -> int:
    """A whole number, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(f"{value!r} is not a whole number")
    return value


def to_float(value: object) -> float:
    """A finite number, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def to_bool(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def to_string(value: object) -> str:
    """Text."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def to_strings(value: object) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    return tuple(to_string(item) for item in value)


def to_ints(value: object) -> tuple[int, ...]:
    """A list of whole numbers."""
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    return tuple(to_int(item) for item in value)


def to_pair(value: object) -> tuple[float, float] | None:
    """A lowest and a highest value; None for None."""
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise TypeError(f"{value!r} is not a lowest and a highest value")
    low, high = to_float(value[0]), to_float(value[1])
    if low > high:
        raise ValueError(f"{low} is above {high}")
    return low, high


def to_cycles(value: object, width: int) -> tuple[int | None, ...]:
    """A row of a hazard matrix: ``width`` whole numbers, ``"?"`` for None."""
    if not isinstance(value, list) or len(value) != width:
        raise ValueError(f"a row holds {width} numbers, one per reader")
    return tuple(None if item == "?" else to_int(item) for item in value)


def check_bounds(low_cycles: tuple[int | None, ...], high_cycles: tuple[int | None, ...]) -> None:
    """Every upper bound has its lower one, and none is below it."""
    for low, high in zip(low_cycles, high_cycles, strict=True):
        if (low is None) != (high is None) or (low is not None and high is not None and low > high):
            raise ValueError(f"{high} is not an upper bound of {low}")
