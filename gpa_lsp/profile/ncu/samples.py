"""Counts per instruction of one launch as columns, and the stall samples among them.

``smsp__pcsamp_warps_issue_stalled_<reason>`` counts every sample of a warp in that state at an instruction, and the same name with
``_not_issued`` the subset taken in cycles in which the scheduler issued nothing: the first includes the second. Reasons are taken from the names
present. Time series of the same data (``warpsampling:`` names) and lists of names (``group:``) are no samples.

A launch has some forty such metrics with up to thousands of instances each; making a Python object per instance is what reading a report would
cost most of. The instances of a metric are nearly always of one shape, an integer id and an integer value, and then their bytes are nothing but
varints in a fixed order, which numpy takes apart for many metrics at once, without protobuf. Anything else is decoded one by one.
"""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.profile.model import Launch, Metric, StallSamples
from gpa_lsp.profile.ncu import schema
from gpa_lsp.profile.ncu.metrics import OVER_TIME, LazyMetrics
from gpa_lsp.profile.stall_reasons import read_reason

# Absolute instruction addresses and the count of each; equally long, in file order
InstructionCounts = tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]

_MAX_COUNT = 1 << 53
# What stands before the instances of most metrics: the name, and a whole number for all of them together, with its length
_HEAD = re.compile(rb"\x08[\x80-\xff]*[\x00-\x7f](?:\x12(.)(\x28[\x80-\xff]*[\x00-\x7f]))?", re.DOTALL)
_NO_CORRELATION = b"\x20\x00"  # Stands behind the instances, or is left out
# Field 3 of a metric, fields 1 and 2 of an instance (messages), field 5 of a value (uint64)
_INSTANCE_TAG, _ID_TAG, _VALUE_TAG, _UINT64_TAG = 0x1A, 0x0A, 0x12, 0x28
# Instance tag, its length; id tag, its length, uint64 tag, id; value tag, its length, uint64 tag, value
_VARINTS_PER_INSTANCE = 10
_WORD_BYTES = 8  # What a varint may take to be taken apart with others; a longer one is no count, and hardly an address
# Length of a varint → the bits that count in its bytes, as a little-endian word
_SEPTETS = np.array([int.from_bytes(b"\x7f" * length, "little") for length in range(_WORD_BYTES + 1)], np.uint64)
_MOST_TOGETHER_BYTES = 1 << 20  # Taking bytes apart needs some thirty times their memory


def read_counts(data: bytes) -> InstructionCounts | None:
    """Addresses and counts of one metric, empty if it counted nothing; None if its instances are not counts by address."""
    return read_all_counts([data])[0]


def read_all_counts(encoded: Sequence[bytes]) -> list[InstructionCounts | None]:
    """Counts of several metrics. Short ones are decoded together if all have the usual shape."""
    if sum(map(len, encoded)) > _MOST_TOGETHER_BYTES and len(encoded) > 1:
        return [read_counts(data) for data in encoded]
    runs = [_cut_instances(data) for data in encoded]
    usual = [run for run in runs if run is not None]
    fast = _read_integers(usual) if len(usual) == len(runs) else None
    if fast is None:
        return [_read_slowly(encoded[0])] if len(encoded) == 1 else [read_counts(data) for data in encoded]
    return [_drop_repeated_scalar(columns) for columns in fast]


def _cut_instances(data: bytes) -> bytes | None:
    """Bytes of a metric's instances, if it has the usual shape; else None.

    >>> _cut_instances(b"\\x08\\x80\\x01\\x12\\x02\\x28\\x07\\x1aetc.\\x20\\x00")
    b'\\x1aetc.'
    """
    head = _HEAD.match(data)
    if head is None or (head[1] is not None and head[1][0] != len(head[2])):
        return None
    return data[head.end() :].removesuffix(_NO_CORRELATION)


def _read_slowly(data: bytes) -> InstructionCounts | None:
    message = schema.ColumnMetric.FromString(data)
    if message.correlation_kind == OVER_TIME:
        return None
    pairs = [_read_pair(instance) for instance in message.instances]
    if not all(0 <= address < 1 << 64 and 0 <= count < _MAX_COUNT for address, count in pairs):
        return None
    columns = np.array([pair[0] for pair in pairs], np.uint64), np.array([pair[1] for pair in pairs], np.int64)
    return _drop_repeated_scalar(columns)


def _drop_repeated_scalar(columns: InstructionCounts) -> InstructionCounts:
    if len(columns[0]) == 1 and columns[0][0] == 0:
        # From 2024.3 on many scalars repeat their value as one instance with id 0: no instruction.
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    return columns


def _read_integers(runs: Sequence[bytes]) -> list[InstructionCounts] | None:
    """Columns of some metrics from the bytes of their instances; None if they have another shape."""
    data = b"".join(runs)
    octets = np.frombuffer(data + bytes(_WORD_BYTES), np.uint8)
    last = np.flatnonzero(octets[: len(data)] < 0x80)
    count, rest = divmod(len(last), _VARINTS_PER_INSTANCE)
    if rest or (count and last[-1] != len(data) - 1):
        return None
    if not count:
        return [(np.empty(0, np.uint64), np.empty(0, np.int64))] * len(runs) if not data else None
    ends = last.reshape(count, _VARINTS_PER_INSTANCE) + 1
    starts = np.concatenate(([0], ends[:-1, -1]))
    run_ends = np.cumsum([len(run) for run in runs])
    ends_of_runs = np.searchsorted(starts, run_ends)
    is_whole = np.append(starts, len(data))[ends_of_runs] == run_ends
    lengths = ends[:, -1] - ends[:, 1]
    if not (is_whole.all() and _is_message(octets, starts, ends[:, 1], _INSTANCE_TAG, lengths)):
        return None
    columns = []
    for tag, own_starts, own in ((_ID_TAG, ends[:, 1], ends[:, 2:6]), (_VALUE_TAG, ends[:, 5], ends[:, 6:])):
        lengths = own[:, 3] - own[:, 2]
        is_sound = (
            _is_message(octets, own_starts, own[:, 1], tag, lengths + 1)
            and (octets[own_starts + 2] == _UINT64_TAG).all()
            and lengths.max() <= _WORD_BYTES
        )
        if not is_sound:
            return None
        columns.append(_read_varints(octets, own[:, 2], lengths))
    ids, values = columns
    if values.max() >= _MAX_COUNT:
        return None
    bounds = [0, *ends_of_runs.tolist()]
    counts = values.astype(np.int64)
    return [(ids[first:end], counts[first:end]) for first, end in pairwise(bounds)]


def _is_message(
    octets: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    content_starts: npt.NDArray[np.int64],
    tag: int,
    lengths: npt.NDArray[np.int64],
) -> bool:
    """Whether a tag and a one-byte length stand at every start, before contents of these lengths."""
    return bool(
        (content_starts - starts == 2).all() and (octets[starts] == tag).all() and (octets[starts + 1] == lengths).all()
    )


def _read_varints(
    octets: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint64]:
    """Varints of at most eight bytes each.

    >>> _read_varints(np.array([8, 0xAC, 2, *bytes(8)], np.uint8), np.array([0, 1]), np.array([1, 2])).tolist()
    [8, 300]
    """
    words_at: npt.NDArray[np.uint64] = np.ndarray((len(octets) - _WORD_BYTES + 1,), "<u8", octets, strides=(1,))
    words = words_at[starts] & _SEPTETS[lengths]
    values = words & np.uint64(0x7F)
    for index in range(1, int(lengths.max())):
        values |= words >> np.uint64(index) & np.uint64(0x7F << 7 * index)
    return values


def _read_pair(data: bytes) -> tuple[int, int]:
    instance = schema.Instance.FromString(data)
    return _read_number(instance.correlation_id), _read_number(instance.value)


def _read_number(value: Any) -> int:
    """Integer from any encoding of a value; -1 for text, fractions and nothing."""
    kind = value.WhichOneof("kind")
    if kind in (None, "text"):
        return -1
    number: int | float = getattr(value, kind)
    is_integer = math.isfinite(number) and number == int(number)
    return int(number) if is_integer else -1


def read_instruction_counts(metrics: Mapping[str, Metric], name: str) -> InstructionCounts | None:
    """Counts of one metric by instruction.

    Args:
        metrics: of a launch.
        name: of the metric.

    Returns:
        The columns, empty where the metric was collected and counted nothing; None when it was not collected or does not count by instruction
        (time series, fractions, text).

    >>> metric = Metric(name="inst_executed", value=7, instance_ids=(4096, 4112), instance_values=(3, 4))
    >>> [column.tolist() for column in read_instruction_counts({"inst_executed": metric}, "inst_executed")]
    [[4096, 4112], [3, 4]]
    """
    if name not in metrics:
        return None
    if isinstance(metrics, LazyMetrics):
        # A Python number per instruction would be what reading costs most; the encoded bytes become columns at once.
        return read_counts(metrics.find_encoded(name))
    return _collect(metrics[name])


def _collect(metric: Metric) -> InstructionCounts | None:
    if metric.over_time:
        return None
    if metric.instance_ids == (0,):
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)  # a scalar that repeats its value
    addresses: list[int] = []
    counts: list[int] = []
    for address, count in zip(metric.instance_ids, metric.instance_values, strict=True):
        if not isinstance(address, int) or isinstance(count, str) or count != count // 1:
            return None
        if not (0 <= address < 1 << 64 and 0 <= count < _MAX_COUNT):
            return None
        addresses.append(address)
        counts.append(int(count))
    return np.array(addresses, np.uint64), np.array(counts, np.int64)


_DEFAULT_BUFFER_BYTES = 33_554_432
# With the default buffer a launch stops at 3,669,964 to 3,670,012 samples without a word.
# Source: 75 of 350 sampled launches in reports of 2020.3 to 2025.
_SATURATED_SAMPLES = 3_660_000

_Counts = dict[str, InstructionCounts]


def read_samples(metrics: LazyMetrics) -> tuple[StallSamples | None, list[str]]:
    """Stall samples of a launch (None if it has none by instruction), and a sentence for each irregularity."""
    all_counts: _Counts = {}
    latency_counts: _Counts = {}
    problems: list[str] = []
    named = [(name, reason) for name in metrics if (reason := read_reason(name)) is not None]
    every = read_all_counts([metrics.find_encoded(name) for name, _ in named])
    for (name, (spelling, is_latency)), counted in zip(named, every, strict=True):
        if counted is None:
            problems.append(f"metric {name} does not hold counts per instruction and is left out")
            continue
        (latency_counts if is_latency else all_counts)[spelling] = counted
    reasons = tuple(sorted(all_counts.keys() | latency_counts.keys()))
    lists = [*all_counts.values(), *latency_counts.values()]
    if not any(len(addresses) for addresses, _ in lists):
        return None, problems
    problems += _describe_missing(all_counts, latency_counts)
    addresses = _unite_addresses([addresses for addresses, _ in lists])
    latency_samples = _fill(latency_counts, reasons, addresses)
    # A reason of which only the subset was collected: the subset is a lower bound of the whole.
    all_samples = _fill({**latency_counts, **all_counts}, reasons, addresses)
    samples = StallSamples(
        addresses=addresses,
        reasons=reasons,
        all_samples=all_samples,
        latency_samples=None if _find_unsplit(all_counts, latency_counts) else latency_samples,
    )
    return samples, problems


def is_truncated(launch: Launch) -> bool:
    """Whether the sampling buffer ran full, so that samples cover only the beginning of the launch.

    2026.1 and later say so (``smsp__pcsamp_buffer_overflow``). Before, only the count shows it: at the default buffer size, launches stop just
    above 3.66 million samples, while the metric of dropped bytes stays 0.
    """
    if (launch.read_number("smsp__pcsamp_dropped_bytes") or 0) > 0:
        return True
    overflow = launch.read_number("smsp__pcsamp_buffer_overflow")
    if overflow is not None:
        return overflow != 0
    buffer_bytes = launch.read_number("smsp__pcsamp_buffer_size_bytes")
    if buffer_bytes not in (None, _DEFAULT_BUFFER_BYTES):
        return False
    return launch.samples is not None and launch.samples.total_samples >= _SATURATED_SAMPLES


def _unite_addresses(lists: list[npt.NDArray[np.uint64]]) -> npt.NDArray[np.uint64]:
    first = lists[0]
    # Every report seen lists the same instructions in the same order under every reason.
    if all(np.array_equal(first, other) for other in lists[1:]):
        lists = [first]
    return find_distinct(np.concatenate(lists))


def _fill(counts: _Counts, reasons: tuple[str, ...], addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    table = np.zeros((len(addresses), len(reasons)), np.int64)
    for column, reason in enumerate(reasons):
        if reason in counts:
            ids, values = counts[reason]
            if np.array_equal(ids, addresses):  # the usual case
                table[:, column] = values
                continue
            np.add.at(table[:, column], np.searchsorted(addresses, ids), values)
    return table


def _find_unsplit(all_counts: _Counts, latency_counts: _Counts) -> list[str]:
    """Reasons counted without their not-issued part; ``selected`` has none."""
    missing = all_counts.keys() - latency_counts.keys() - {"selected"}
    return sorted(reason for reason in missing if all_counts[reason][1].any())


def _describe_missing(all_counts: _Counts, latency_counts: _Counts) -> list[str]:
    problems = []
    if unsplit := _find_unsplit(all_counts, latency_counts):
        message = f"the report has no not-issued counts of {', '.join(unsplit)}, so its not-issued samples are unknown"
        problems.append(message)
    if only_latency := sorted(latency_counts.keys() - all_counts.keys()):
        problems.append(f"the report has only not-issued counts of {', '.join(only_latency)}")
    return problems
