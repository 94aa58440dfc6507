"""The writing of numbers: every rounding, prefix, percent sign and interval that a person reads is made here and nowhere else.

The rules: a share has two digits (``41 %``, ``4.2 %``), and more only where it would be nothing or all (``<0.1 %``, ``99.4 %``,
``>99.9 %``); what was measured has three significant digits; what was counted has all of them.
"""

import math
from collections.abc import Callable, Sequence
from enum import StrEnum

from gpa_lsp.foundation.figures import Share, Spread

UNKNOWN = "–"  # Shown for an unknown number

_SI_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_THOUSAND = 1000  # From here on no digit before the point is rounded away
_ROUNDED_UP = 0.9995  # of a unit: from here on three digits are written as 1.00 of it
_DURATIONS_NS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))
_NUMBER_WORDS = ((1e12, "trillion "), (1e9, "billion "), (1e6, "million "))
_BINARY_PREFIXES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


class Quantity(StrEnum):
    """The kind of a number, which decides how it is written."""

    TEXT = "text"
    COUNT = "count"
    NUMBER = "number"  # Without a unit, with decimals
    RATIO = "ratio"  # 0..1, written in percent
    FACTOR = "factor"  # A speedup, written 1.23×
    BYTES = "bytes"
    BYTES_PER_S = "bytes/s"
    FLOPS_PER_S = "FLOP/s"
    INTEGER_OPS_PER_S = "IOP/s"
    OPS_PER_S = "OP/s"  # Of special functions
    INSTRUCTIONS_PER_S = "warp instructions/s"
    OPS_PER_BYTE = "operations/byte"
    CYCLES = "cycles"
    HZ = "Hz"
    NS = "ns"
    SAMPLES = "samples"
    WARPS = "warps"
    BYTES_PER_UPDATE = "bytes/update"  # Of a grid: what a model of volumes counts by
    UPDATES_PER_S = "updates/s"


Cell = str | int | float | None  # One value of a table; None is unknown and is written so


def format_count(count: float | None) -> str:
    """A number of things, with separators.

    >>> format_count(312936), format_count(None)
    ('312,936', '–')
    """
    return UNKNOWN if count is None or not math.isfinite(count) else f"{round(count):,}"


def format_count_of(count: float, noun: str) -> str:
    """A number of things with their name.

    >>> format_count_of(1, "kernel"), format_count_of(1200, "sample"), format_count_of(2, "branch")
    ('1 kernel', '1,200 samples', '2 branches')
    """
    return f"{format_count(count)} {noun if count == 1 else make_plural(noun)}"


def format_number_of(number: float, noun: str) -> str:
    """A measured number of things with their name.

    >>> format_number_of(1.0, "line"), format_number_of(3.52, "sector")
    ('1 line', '3.52 sectors')
    """
    text = format_number(number)
    return f"{text} {noun if text == '1' else make_plural(noun)}"


def make_plural(noun: str) -> str:
    """Several of a thing.

    >>> make_plural("copy"), make_plural("way"), make_plural("branch"), make_plural("fixed latency"), make_plural("pass")
    ('copies', 'ways', 'branches', 'fixed latencies', 'passes')
    """
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def format_launches(count: int | None) -> str:
    """A number of launches.

    >>> format_launches(1), format_launches(1200), format_launches(None)
    ('1 launch', '1,200 launches', 'an unknown number of launches')
    """
    return "an unknown number of launches" if count is None else format_count_of(count, "launch")


def format_number(value: float | None) -> str:
    """A number without a unit: three significant digits and no exponent; whole numbers keep all of theirs.

    >>> format_number(6.1909), format_number(0.012345), format_number(12345.6), format_number(14.0), format_number(math.inf)
    ('6.19', '0.0123', '12,346', '14', 'unlimited')
    """
    if value is None or math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return "unlimited"
    return f"{value + 0.0:,.0f}" if value == round(value) else _write_digits(value)


def _write_digits(value: float) -> str:
    """Three significant digits, zeros at the end among them."""
    if value == 0:
        return "0"
    if abs(value) < _THOUSAND:
        value = float(f"{value:.3g}")  # 0.9997 has as many digits before its point as 1
    decimals = max(0, min(12, 2 - math.floor(math.log10(abs(value)))))
    return f"{value:,.{decimals}f}"


def format_percent(ratio: float | None) -> str:
    """A ratio in percent, with two digits or, at either end, one decimal; more than nothing is never nothing, nor less than all all of it.

    >>> format_percent(0.4123), format_percent(0.0423), format_percent(0.0002), format_percent(0.9942), format_percent(0.9996)
    ('41 %', '4.2 %', '<0.1 %', '99.4 %', '>99.9 %')
    >>> format_percent(0.0), format_percent(1.0), format_percent(None)
    ('0 %', '100 %', '–')
    """
    if ratio is None or not math.isfinite(ratio):
        return UNKNOWN
    if ratio <= 0 or ratio >= 1:
        return f"{100 * ratio:,.0f} %"
    if ratio < 0.0005:
        return "<0.1 %"
    if ratio >= 0.9995:
        return ">99.9 %"
    return f"{_write_points(100 * ratio)} %"


def _write_points(percent: float) -> str:
    """Percent below 100 with two digits, or with one decimal above 99."""
    is_inner = 9.95 <= percent < 99
    return f"{percent:.{0 if is_inner else 1}f}"


def format_limit(ratio: float) -> str:
    """A limit that a user set, in percent, as exactly as it was set.

    >>> format_limit(0.05), format_limit(0.0125)
    ('5 %', '1.25 %')
    """
    return f"{100 * ratio:.6g} %"


def format_margin(share: Share) -> str:
    """Half the width of a share's 95 % interval in percentage points, its wider side; empty when it rounds to nothing.

    >>> from gpa_lsp.foundation.figures import measure_share
    >>> format_margin(measure_share(412, 1000)), format_margin(measure_share(1, 10_000_000))
    ('±3.1', '')
    """
    points = 100 * max(share.high_ratio - share.ratio, share.ratio - share.low_ratio)
    if points < 0.05:
        return ""
    return f"±{points:.{0 if points >= 9.95 else 1}f}"


def format_share(share: Share) -> str:
    """A share in percent with its 95 % interval; of nothing, without.

    >>> from gpa_lsp.foundation.figures import measure_share
    >>> format_share(measure_share(412, 1000))
    '41 % (±3.1)'
    """
    if share.whole_samples == 0:
        return UNKNOWN
    margin = format_margin(share) if share.part_samples else ""
    return f"{format_percent(share.ratio)} ({margin})" if margin else format_percent(share.ratio)


def format_speedup(factor: float) -> str:
    """Run time before over run time after.

    >>> format_speedup(1.3871), format_speedup(12.25), format_speedup(math.inf)
    ('1.39×', '12.2×', 'unlimited')
    """
    if not math.isfinite(factor):
        return UNKNOWN if math.isnan(factor) else "unlimited"
    return f"{factor:,.{_count_decimals(factor)}f}×"


def floor_speedup(factor: float) -> float:
    """Rounded down to the digits that :func:`format_speedup` prints: a bound is never printed larger than it is.

    >>> format_speedup(floor_speedup(3.659)), format_speedup(floor_speedup(12.29)), format_speedup(floor_speedup(math.inf))
    ('3.65×', '12.2×', 'unlimited')
    """
    if not math.isfinite(factor):
        return factor
    steps = 10.0 ** _count_decimals(factor)
    return math.floor(round(factor * steps, 6)) / steps


def _count_decimals(factor: float) -> int:
    """Decimals of a speedup."""
    return 2 if factor < 9.995 else 1 if factor < 99.95 else 0


_LEAST_TENTH = 1.1  # What begins below it would begin at no gain in tenths


def format_gain_range(low: float, high: float, bound: float = math.inf) -> str:
    """The gain of a change, from the least to the most: both ends rounded outwards to the precision of a model, but never above the bound, nor to
    no gain.

    >>> format_gain_range(3.177, 5.95), format_gain_range(1.13, 1.34), format_gain_range(1.018, 1.043), format_gain_range(5.3, 63.5)
    ('3–6×', '1.1–1.4×', '1.01–1.05×', '5–64×')
    >>> format_gain_range(1.066, 1.42)
    '1.06–1.5×'
    >>> format_gain_range(2.0, 2.0), format_gain_range(2.04, math.inf), format_gain_range(1.25, 3.657, 3.657)
    ('2×', '2× or more', '1.2–3.5×')
    """
    is_close = high - low < 0.2
    most = floor_speedup(bound)
    first = _write_gain(min(_round_gain(low, math.floor, is_close=is_close or low < _LEAST_TENTH), most))
    if not math.isfinite(high):
        return f"{first}× or more"
    last = _round_gain(high, math.ceil, is_close=is_close)
    if last > most:
        last = max(_round_gain(most, math.floor, is_close=is_close), float(first.replace(",", "")))
    return f"{first}×" if first == _write_gain(last) else f"{first}–{_write_gain(last)}×"


def _round_gain(factor: float, outwards: Callable[[float], int], *, is_close: bool) -> float:
    steps = 100 if is_close else 10 if factor < 3 else 2 if factor < 10 else 1  # of 1
    return outwards(round(factor * steps, 6)) / steps


def _write_gain(factor: float) -> str:
    return f"{factor:,.6g}"


def format_change(ratio: float) -> str:
    """A change by a part of what there was before.

    >>> format_change(-0.183), format_change(0.042), format_change(0.0)
    ('−18 %', '+4.2 %', '±0 %')
    """
    percent = 100 * abs(ratio)
    digits = f"{percent:,.0f}" if percent >= 9.95 else f"{percent:.1f}"
    if float(digits.replace(",", "")) == 0:
        return "±0 %"
    return f"{'−' if ratio < 0 else '+'}{digits} %"


def format_points(ratio: float) -> str:
    """The rise or fall of a share, in percentage points.

    >>> format_points(0.0423), format_points(-0.18), format_points(0.0)
    ('+4.2 points', '−18 points', '±0 points')
    """
    return f"{format_change(ratio).removesuffix(' %')} points"


def format_duration_ns(duration_ns: float | None) -> str:
    """A time in the unit that suits it.

    >>> format_duration_ns(6_190_912), format_duration_ns(812.0), format_duration_ns(999.8), format_duration_ns(None)
    ('6.19 ms', '812 ns', '1.00 µs', '–')
    """
    if duration_ns is None or not math.isfinite(duration_ns):
        return UNKNOWN
    size_ns, unit = _choose_unit(duration_ns, _DURATIONS_NS, "ns")
    return f"{_write_digits(duration_ns / size_ns)} {unit}"


def _choose_unit(value: float, units: Sequence[tuple[float, str]], least: str = "") -> tuple[float, str]:
    """The largest unit of which a value is written as one or more, with its size."""
    return next((one for one in units if abs(value) >= _ROUNDED_UP * one[0]), (1.0, least))


def format_timed_ns(duration_ns: float, error_ns: float | None) -> str:
    """A time and how sure it is, in the same unit.

    >>> format_timed_ns(41_234.0, 312.0), format_timed_ns(812.0, None), format_timed_ns(2e6, 20.0)
    ('41.2 µs ± 0.3', '812 ns', '2.00 ms ± 0.00002')
    >>> format_timed_ns(999.8, 12.0), format_timed_ns(41_234.0, 960.0)
    ('1.00 µs ± 0.01', '41.2 µs ± 1')
    """
    shown = format_duration_ns(duration_ns)
    if error_ns is None or not math.isfinite(error_ns) or not math.isfinite(duration_ns):
        return shown
    size_ns, _ = _choose_unit(duration_ns, _DURATIONS_NS)
    return f"{shown} ± {_write_error(error_ns / size_ns)}"


def format_duration_range_ns(low_ns: float, high_ns: float) -> str:
    """The ends of a range of times, in one unit: that of the longer one.

    >>> format_duration_range_ns(970_000.0, 1_010_000.0), format_duration_range_ns(812.0, 999.8)
    ('0.970 to 1.01 ms', '0.812 to 1.00 µs')
    """
    size_ns, unit = _choose_unit(high_ns, _DURATIONS_NS, "ns")
    return f"{_write_digits(low_ns / size_ns)} to {_write_digits(high_ns / size_ns)} {unit}"


def _write_error(error: float) -> str:
    """One digit that counts, without an exponent."""
    if error <= 0:
        return "0"
    error = float(f"{error:.1g}")  # 0.96 is written as 1
    places = max(0, -math.floor(math.log10(error)))
    return f"{error:,.{places}f}"


def format_seconds(duration_s: float) -> str:
    """A time that is waited for, or a limit of one.

    >>> format_seconds(600.0), format_seconds(0.5), format_seconds(12.345)
    ('600 s', '0.5 s', '12.3 s')
    """
    return f"{format_count(duration_s)} s" if duration_s >= 100 else f"{duration_s:.3g} s"


def format_duration_spread(spread: Spread | None) -> str:
    """A time over several launches: mean, standard deviation and range.

    >>> format_duration_spread(Spread(count=2, mean=2e6, minimum=1e6, maximum=3e6, standard_deviation=1.41e6))
    '2.00 ms ± 1.41 ms (1.00 ms to 3.00 ms)'
    """
    if spread is None or spread.standard_deviation is None:
        is_mean = spread is not None and spread.count > 1  # of launches that cannot be told apart any more
        return format_duration_ns(spread.mean if spread else None) + (" on average" if is_mean else "")
    ends = f"{format_duration_ns(spread.minimum)} to {format_duration_ns(spread.maximum)}"
    return f"{format_duration_ns(spread.mean)} ± {format_duration_ns(spread.standard_deviation)} ({ends})"


def format_hz(frequency_hz: float | None) -> str:
    """A frequency.

    >>> format_hz(1_725_000_000.0), format_hz(999_700_000.0)
    ('1.73 GHz', '1.00 GHz')
    """
    return _format_si(frequency_hz, "Hz")


def format_per_s(rate: float | None, what: str) -> str:
    """Things per second, by their short name: operations of a type, warp instructions (``inst``), transactions (``txn``).

    >>> format_per_s(16e12, "IOP"), format_per_s(317.4e9, "inst"), format_per_s(None, "FLOP")
    ('16.0 TIOP/s', '317 Ginst/s', '–')
    """
    return _format_si(rate, f"{what}/s")


def format_bytes_per_s(rate: float | None) -> str:
    """A bandwidth, in decimal prefixes, as vendors state it.

    >>> format_bytes_per_s(768e9), format_bytes_per_s(3_471.36e9)
    ('768 GB/s', '3.47 TB/s')
    """
    return _format_si(rate, "B/s")


def format_intensity(operations_per_byte: float | None, unit: str = "FLOP/B") -> str:
    """Operations per byte.

    >>> format_intensity(0.08333), format_intensity(2048.0, "IOP/B"), format_intensity(1e-7)
    ('0.0833 FLOP/B', '2,048 IOP/B', '<0.0001 FLOP/B')
    """
    if operations_per_byte is None or not math.isfinite(operations_per_byte):
        return UNKNOWN
    if 0 < operations_per_byte < 1e-4:
        return f"<0.0001 {unit}"
    return f"{_write_digits(operations_per_byte)} {unit}"


def format_quantity(value: Cell, quantity: Quantity) -> str:
    """A number as its quantity is written; text as it is, and what is unknown as unknown.

    >>> format_quantity(0.4123, Quantity.RATIO), format_quantity(-768e9, Quantity.BYTES_PER_S), format_quantity(None, Quantity.COUNT)
    ('41 %', '−768 GB/s', '–')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return UNKNOWN
    if isinstance(value, str):
        return value
    if math.isinf(value):
        return "unlimited"
    return f"{'−' if value < 0 else ''}{_FORMATS[quantity](abs(value))}"


def format_bytes(size_bytes: float | None) -> str:
    """An amount of memory, in binary prefixes.

    >>> format_bytes(49152), format_bytes(49153), format_bytes(1664), format_bytes(96), format_bytes(None)
    ('48 KiB', '48 KiB', '1.62 KiB', '96 B', '–')
    """
    if size_bytes is None or not math.isfinite(size_bytes):
        return UNKNOWN
    size, unit = _choose_unit(size_bytes, _BINARY_PREFIXES, "B")
    scaled = size_bytes / size
    digits = _write_digits(scaled)
    is_whole = unit == "B" or not digits.partition(".")[2].strip("0")
    return f"{f'{scaled:,.0f}' if is_whole else digits} {unit}"


def format_dim3(size: Sequence[int] | None) -> str:
    """A grid or block without its trailing ones.

    >>> format_dim3((128, 1, 1)), format_dim3((16, 16, 1)), format_dim3((1, 1, 4)), format_dim3(None)
    ('128', '16×16', '1×1×4', 'unknown')
    """
    if size is None:
        return "unknown"
    kept = list(size)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return "×".join(f"{length:,}" for length in kept)


def _format_si(value: float | None, unit: str) -> str:
    if value is None or not math.isfinite(value):
        return UNKNOWN
    size, prefix = _choose_unit(value, _SI_PREFIXES)
    return f"{_write_digits(value / size)} {prefix}{unit}"


def format_update_bytes(bytes_per_update: float) -> str:
    """Bytes that an update moves, as exactly as a model knows them: a decimal below 100, none above.

    >>> format_update_bytes(12.24), format_update_bytes(4097.3), format_update_bytes(0.02), format_update_bytes(0.0)
    ('12.2', '4,097', '<0.1', '0.0')
    """
    if 0 < bytes_per_update < 0.05:
        return "<0.1"
    return f"{bytes_per_update:.1f}" if bytes_per_update < 99.95 else f"{bytes_per_update:,.0f}"


def format_rate(per_s: float, noun: str) -> str:
    """A number of things done in a second.

    >>> format_rate(9.75e12, "updates"), format_rate(115e9, "updates"), format_rate(120.0, "updates")
    ('9.75 trillion updates', '115 billion updates', '120 updates')
    """
    size, word = _choose_unit(per_s, _NUMBER_WORDS)
    return f"{format_number(per_s / size)} {word}{noun}"


def format_file_value(value: float) -> str:
    """A number of a file, as a message about that file repeats it.

    >>> format_file_value(0.0), format_file_value(49.5), format_file_value(1e300)
    ('0', '49.5', '1e+300')
    """
    return f"{value:g}"


_FORMATS: dict[Quantity, Callable[[float], str]] = {
    Quantity.TEXT: format_number,
    Quantity.COUNT: format_count,
    Quantity.NUMBER: format_number,
    Quantity.RATIO: format_percent,
    Quantity.FACTOR: format_speedup,
    Quantity.BYTES: format_bytes,
    Quantity.BYTES_PER_S: format_bytes_per_s,
    Quantity.FLOPS_PER_S: lambda value: _format_si(value, "FLOP/s"),
    Quantity.INTEGER_OPS_PER_S: lambda value: _format_si(value, "IOP/s"),
    Quantity.OPS_PER_S: lambda value: _format_si(value, "OP/s"),
    Quantity.INSTRUCTIONS_PER_S: lambda value: _format_si(value, "inst/s"),
    Quantity.OPS_PER_BYTE: lambda value: format_intensity(value, "op/B"),
    Quantity.CYCLES: lambda value: f"{format_number(value)} cycles",
    Quantity.HZ: format_hz,
    Quantity.NS: format_duration_ns,
    Quantity.SAMPLES: format_count,
    Quantity.WARPS: format_number,
    Quantity.BYTES_PER_UPDATE: lambda value: f"{format_update_bytes(value)} bytes",
    Quantity.UPDATES_PER_S: lambda value: format_rate(value, "updates/s"),
}
