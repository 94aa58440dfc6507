"""Samples of a kernel as frames of a flame graph: host calls, the kernel, lines of inline chains, called functions, stall reasons.

Samples carry no call stack. Those in a function that was called are shared among its call sites by how often each executed, as gprof does, and
what is called from nowhere we see stands beside the kernel's own lines.

Vega's own ``partition`` lays the graph out, so that pages need no library beside the one that draws their other charts. Which frame is in focus,
which one fills the width and what is searched for are signals, which a page sets (``view.signal(name, value)``):

* ``chosen``: id of the frame that stands out; -1 for none;
* ``left``, ``right``: the part of all samples that fills the width, 0 to 1;
* ``wanted``: a text in lower case; frames without it are drawn pale. Empty for none.

Source: B. Gregg, "The Flame Graph", CACM 59(6), 2016; upside down (icicles), so that the kernel stands at the top.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import asdict

from gpa_lsp.document.charts.themes import STALL_COLOURS, Spec
from gpa_lsp.document.html_report.code_columns import KernelAddresses, SourceTexts
from gpa_lsp.foundation.locations import Frame, shorten_paths, write_place
from gpa_lsp.foundation.numbers import format_count_of, format_percent
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.launch_places import CallStack, find_common_frames, shorten_frame
from gpa_lsp.report.model import FunctionRow, KernelReport

_LEAST_RATIO = 0.001  # Of all samples: what is less is counted with the frame above

_MOST_DEPTH = 24
_MOST_CALLERS = 8  # Frames of the host above the kernel: the innermost
_LEAST_PLACES = 2
_MOST_PLACES = 12
_OTHERS, _UNKNOWN = "other places", "elsewhere"
_MOST_FRAMES = 1500
_LONGEST_SOURCE = 80
_LEAST_SAMPLES = 1e-6
_CALLED = "call of "

# A call in a listing: of a name, or of a place in the same section
_CALL = re.compile(r"\bCALL\b.*?(?:`\((?P<name>[^)]+)\)|0x(?P<offset>[0-9a-f]+)\s*$)")

_ROW_PIXELS = 21
_INK = "#0d1117"  # Of a label: legible on every colour of a stall reason, and so on light and on dark ground
_LEAST_LABEL_PIXELS = 26

_Key = Frame | str  # A line of an inline chain, or the mangled name of a function that was called

_Vector = npt.NDArray[np.float64]


class _Node(Struct, kw_only=True):
    """Samples at a place, and what is below it."""

    own: _Vector
    below: dict[_Key, "_Node"] = field(default_factory=dict)

    def enter(self, key: _Key) -> "_Node":
        """The child node of a place; made where it is missing."""
        return self.below.setdefault(key, _Node(own=np.zeros_like(self.own)))

    def sum_all(self) -> _Vector:
        """Samples of the node and all below it, by stall reason."""
        total: _Vector = self.own + sum((node.sum_all() for node in self.below.values()), np.zeros_like(self.own))
        return total


class FlameFrame(Struct, frozen=True, kw_only=True):
    """A frame."""

    parent: int | None  # position of the frame above; None for the topmost
    label: str  # what is written on it
    words: str  # what is said when it is chosen
    samples: float  # that are in no frame below
    group: str  # of stall reasons, which decides the colour
    link: str = ""  # fragment of its line; may be empty


def build_flame_frames(
    kernel: KernelReport, name: str, addresses: KernelAddresses, texts: SourceTexts
) -> list[FlameFrame]:
    """The frames, those above before those below."""
    if not kernel.total_samples or not len(kernel.instructions):
        return []
    procedures = _Procedures(kernel)
    root = procedures.gather(kernel.instructions.all_samples)
    if len(root.below) + sum(len(node.below) for node in root.below.values()) < _LEAST_PLACES:
        return []
    frames = _Frames(kernel, addresses, texts)
    if len(kernel.places) < _LEAST_PLACES:
        return frames.build(root, name)
    return frames.build_by_place(_list_callers(kernel, procedures), name)


class _Caller(Struct, kw_only=True):
    """A frame of the host program, or all of it."""

    own: list[_Node] = field(default_factory=list)  # samples of the launches right here, from the kernel down
    below: dict[str, "_Caller"] = field(default_factory=dict)  # frames that are called here

    def sum_all(self) -> _Vector:
        """Samples of all launches here and below, by stall reason."""
        parts = [*(node.sum_all() for node in self.own), *(caller.sum_all() for caller in self.below.values())]
        total: _Vector = np.sum(parts, axis=0)
        return total


def _list_callers(kernel: KernelReport, procedures: "_Procedures") -> _Caller:
    """The frames that launch, outermost first: of what all launches have in common the innermost, then those by which they differ. Of many places
    those with most samples are told apart.
    """
    common = len(find_common_frames(kernel))
    samples: dict[CallStack, npt.NDArray[np.int64]] = {}
    for number, place in enumerate(sorted(kernel.places, key=lambda place: -int(place.all_samples.sum()))):
        outermost = place.call_stack[::-1]
        own = outermost[common:][-_MOST_CALLERS:] if number < _MOST_PLACES else (_OTHERS,)
        path = (*outermost[:common][-_MOST_CALLERS:], *own) or (_UNKNOWN,)
        known = samples.setdefault(path, np.zeros_like(kernel.instructions.all_samples))
        known[place.rows] += place.all_samples
    top = _Caller()
    for path, counts in samples.items():
        here = top
        for frame in path:
            here = here.below.setdefault(frame, _Caller())
        here.own.append(procedures.gather(counts))
    return top


class _Procedures:
    """The functions of a kernel with instructions: which rows are theirs, and who calls them."""

    def __init__(self, kernel: KernelReport) -> None:
        columns = kernel.instructions
        self._kernel = kernel
        self._starts: dict[str, list[tuple[int, FunctionRow]]] = {}
        for function in kernel.functions:
            section = function.section or function.mangled_name
            self._starts.setdefault(section, []).append((function.start_offset, function))
        for starts in self._starts.values():
            starts.sort(key=lambda start: start[0])
        sections = [columns.functions[index] for index in columns.function_index.tolist()]
        self._owners = [
            self._find_owner(section, offset)
            for section, offset in zip(sections, columns.pc_offsets.tolist(), strict=True)
        ]
        self._rows: dict[str, list[int]] = {}
        for row, owner in enumerate(self._owners):
            self._rows.setdefault(owner, []).append(row)
        self._calls = dict(self._list_calls(sections))
        self._weights = self._weigh()
        self._samples: _Vector
        self._placed: dict[str, float]

    def gather(self, samples: npt.NDArray[np.int64]) -> _Node:
        """Tree of samples, int64[n, k] by instruction and stall reason, from the kernel down."""
        self._samples, self._placed = samples.astype(np.float64), {}
        root = _Node(own=np.zeros(samples.shape[1]))
        entry = self._kernel.mangled_name if self._kernel.mangled_name in self._rows else next(iter(self._owners))
        self._place(root, entry, 1.0, ())
        for owner in self._rows:
            rest = 1.0 - self._placed.get(owner, 0.0)
            if owner != entry and rest > _LEAST_SAMPLES:
                self._place(root.enter(owner), owner, rest, ())
        return root

    def _find_owner(self, section: str, offset: int) -> str:
        owner = section
        for start, function in self._starts.get(section, ()):
            if start > offset:
                break
            owner = function.mangled_name
        return owner

    def _list_calls(self, sections: list[str]) -> Iterator[tuple[int, str]]:
        """Row of a call, and the function it calls."""
        for row, text in enumerate(self._kernel.instructions.texts):
            found = _CALL.search(text) if "CALL" in text else None
            if found is None:
                continue
            callee = found["name"] or self._find_owner(sections[row], int(found["offset"], 16))
            if callee in self._rows and callee != self._owners[row]:
                yield row, callee

    def _weigh(self) -> Mapping[int, float]:
        """Share of a function's samples that each call site is given (row → share), by executions."""
        executions = np.maximum(self._kernel.instructions.executions, 0)
        totals: dict[str, list[int]] = {}
        for row, callee in self._calls.items():
            totals.setdefault(callee, []).append(row)
        weights: dict[int, float] = {}
        for rows in totals.values():
            counts = executions[rows].astype(np.float64)
            shares = counts / counts.sum() if counts.sum() else np.full(len(rows), 1 / len(rows))
            weights.update(zip(rows, shares.tolist(), strict=True))
        return weights

    def _place(self, node: _Node, owner: str, part: float, above: tuple[str, ...]) -> None:
        """Give a part of a function's samples to a node and those below it."""
        self._placed[owner] = self._placed.get(owner, 0.0) + part
        columns = self._kernel.instructions
        for row in self._rows[owner]:
            callee = self._calls.get(row)
            if callee is None and not self._samples[row].any():
                continue
            here = node
            chain = int(columns.chain_index[row])
            for frame in reversed(columns.chains[chain] if chain >= 0 else ()):
                here = here.enter(frame)
            here.own += part * self._samples[row]
            is_followed = callee is not None and callee not in (*above, owner) and len(above) < _MOST_DEPTH
            if callee is not None and is_followed and part * self._weights[row] > _LEAST_SAMPLES:
                self._place(here.enter(callee), callee, part * self._weights[row], (*above, owner))


class _Place(Struct, frozen=True, kw_only=True):
    """Subject of a frame: label, address in the page (may be empty), and function of its line."""

    label: str
    link: str
    function: str


class _Frames:
    """Builder of frames from places."""

    def __init__(self, kernel: KernelReport, addresses: KernelAddresses, texts: SourceTexts) -> None:
        self._kernel = kernel
        self._addresses = addresses
        self._texts = texts
        chains = kernel.instructions.chains
        self._short = shorten_paths({frame.file for chain in chains for frame in chain})
        self._reasons = [describe_stall_reason(reason) for reason in kernel.instructions.reasons]
        self._least = _LEAST_RATIO * kernel.total_samples
        self._frames: list[FlameFrame] = []

    def build(self, root: _Node, name: str) -> list[FlameFrame]:
        """All frames."""
        parent = self._add_callers(root)
        self._add(parent, root, _Place(label=name, link="", function=self._kernel.mangled_name), 0)
        has_places = any(frame.link or frame.label.startswith(_CALLED) for frame in self._frames)
        return self._frames if has_places else []

    def build_by_place(self, top: _Caller, name: str) -> list[FlameFrame]:
        """All frames, the kernel below each place that launches it."""
        parent = None
        if len(top.below) > 1:
            every = top.sum_all()
            words = f"{name} · {self._count(every)}, launched from several places"
            parent = self._append(None, name, words, every)
        self._add_calls(parent, top, name)
        return self._frames

    def _add_calls(self, parent: int | None, caller: _Caller, name: str) -> None:
        for node in caller.own:
            self._add(parent, node, _Place(label=name, link="", function=self._kernel.mangled_name), 0)
        for frame, below in sorted(caller.below.items(), key=lambda item: -float(item[1].sum_all().sum())):
            every = below.sum_all()
            words = f"{frame} · launches {self._count(every)}{self._name_mostly(every)}"
            self._add_calls(self._append(parent, shorten_frame(frame), words, every), below, name)

    def _add_callers(self, root: _Node) -> int | None:
        """Frames of the host that all launches come from, outermost first."""
        parent = None
        every = root.sum_all()
        for frame in find_common_frames(self._kernel)[-_MOST_CALLERS:]:
            words = f"{frame} · launches all of the kernel's samples"
            parent = self._append(parent, shorten_frame(frame), words, every)
        return parent

    def _append(self, parent: int | None, label: str, words: str, every: _Vector, link: str = "") -> int:
        """Add a frame without samples of its own; return its number. *every*: samples below it, which decide its group."""
        group = self._find_group(every)
        self._frames.append(FlameFrame(parent=parent, label=label, words=words, samples=0.0, group=group, link=link))
        return len(self._frames) - 1

    def _add(self, parent: int | None, node: _Node, place: _Place, depth: int) -> None:
        every = node.sum_all()
        words = f"{place.label} · {self._count(every)}{self._name_mostly(every)}"
        number = self._append(parent, place.label, words, every, place.link)
        own = node.own.copy()
        kept = []
        for key, below in sorted(node.below.items(), key=lambda item: -float(item[1].sum_all().sum())):
            inclusive = below.sum_all()
            if inclusive.sum() < self._least or depth >= _MOST_DEPTH or len(self._frames) > _MOST_FRAMES:
                own += inclusive
            else:
                kept.append((key, below))
        self._add_reasons(number, own, place.link)
        for key, below in kept:
            self._add(number, below, self._describe(key, place.function), depth + 1)

    def _add_reasons(self, parent: int, own: _Vector, link: str) -> None:
        """Add a frame per stall reason below a place."""
        for index in np.argsort(-own, kind="stable").tolist():
            if own[index] <= 0:
                break
            reason = self._reasons[index]
            self._frames.append(
                FlameFrame(
                    parent=parent,
                    label=reason.name,
                    words=f"{reason.name} · {self._count(own[index : index + 1])}: {reason.description}",
                    samples=round(float(own[index]), 3),
                    group=reason.group,
                    link=link,
                )
            )

    def _describe(self, key: _Key, function: str) -> _Place:
        if isinstance(key, str):
            return _Place(label=f"{_CALLED}{shorten_name(demangle(key))}", link="", function=key)
        place = write_place(self._short.get(key.file, key.file).rpartition("/")[2], key.line)
        source = self._texts.read_line(self._kernel, key.file, key.line)[:_LONGEST_SOURCE]
        short = "" if key.function is None else shorten_name(demangle(key.function))
        inlined = f"{short} " if short and short != shorten_name(demangle(function)) else ""
        label = f"{inlined}{place} {source}".rstrip()
        return _Place(label=label, link=self._addresses.line(key.file, key.line), function=key.function or function)

    def _count(self, samples: _Vector) -> str:
        total = float(samples.sum())
        share = format_percent(total / self._kernel.total_samples)
        return f"{share} of the samples, {format_count_of(round(total), 'sample')}"

    def _name_mostly(self, samples: _Vector) -> str:
        stalls = np.where([reason.is_stall for reason in self._reasons], samples, 0.0)
        if not stalls.sum():
            return ""
        most = int(stalls.argmax())
        return f", {format_percent(float(stalls[most] / samples.sum()))} of them {self._reasons[most].name}"

    def _find_group(self, samples: _Vector) -> str:
        sums: dict[str, float] = {}
        for reason, count in zip(self._reasons, samples.tolist(), strict=True):
            sums[reason.group] = sums.get(reason.group, 0.0) + count
        return max(sums, key=lambda group: sums[group])


def build_flame_chart(frames: Sequence[FlameFrame], description: str) -> Spec:
    """A Vega specification of the flame graph."""
    rows = [{"id": number, **asdict(frame)} for number, frame in enumerate(frames)]
    groups = [group for group in STALL_COLOURS if any(frame.group == group for frame in frames)]
    return {
        "description": description,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": 0,
        "height": _ROW_PIXELS * _count_levels(frames),
        "signals": _list_signals(),
        "data": [
            {"name": "frames", "values": rows, "transform": _lay_out()},
            {
                "name": "shown",
                "source": "frames",
                "transform": [{"type": "filter", "expr": "datum.x1 > left && datum.x0 < right"}],
            },
        ],
        "scales": [
            {
                "name": "across",
                "type": "linear",
                "domain": [{"signal": "left"}, {"signal": "right"}],
                "range": [0, {"signal": "width"}],
            },
            {
                "name": "reason",
                "type": "ordinal",
                "domain": groups,
                "range": [STALL_COLOURS[group] for group in groups],
            },
        ],
        "legends": [
            {"fill": "reason", "orient": "bottom", "direction": "horizontal", "columns": 7, "symbolType": "square"}
        ],
        "marks": [
            {
                "type": "group",
                "clip": True,
                "encode": {"update": {"width": {"signal": "width"}, "height": {"signal": "height"}}},
                "marks": [_draw_frames(), _write_labels()],
            }
        ],
    }


def _list_signals() -> list[Spec]:
    """Signals of the width, and of the frame the reader chose, zoomed to and searched for."""
    return [
        {
            "name": "width",
            "init": "isFinite(containerSize()[0]) ? containerSize()[0] : 800",
            "on": [
                {
                    "events": "window:resize",
                    "update": "isFinite(containerSize()[0]) && containerSize()[0] > 0 ? containerSize()[0] : width",
                }
            ],
        },
        {"name": "chosen", "value": -1},
        {"name": "left", "value": 0},
        {"name": "right", "value": 1},
        {"name": "wanted", "value": ""},
    ]


def _count_levels(frames: Sequence[FlameFrame]) -> int:
    depths: list[int] = []
    for frame in frames:
        depths.append(0 if frame.parent is None else depths[frame.parent] + 1)
    return 1 + max(depths, default=0)


def _lay_out() -> list[Spec]:
    return [
        {"type": "stratify", "key": "id", "parentKey": "parent"},
        {
            "type": "partition",
            "field": "samples",
            "sort": {"field": "value", "order": "descending"},
            "size": [1, 1],
            "as": ["x0", "y0", "x1", "y1", "depth", "children"],
        },
    ]


_IS_PALE = "wanted !== '' && indexof(lower(datum.words), wanted) < 0"
_PIXELS = "(scale('across', min(datum.x1, right)) - scale('across', max(datum.x0, left)))"


def _draw_frames() -> Spec:
    return {
        "name": "frames",
        "type": "rect",
        "from": {"data": "shown"},
        "encode": {
            "update": {
                "x": {"signal": "scale('across', max(datum.x0, left))"},
                "x2": {"signal": "scale('across', min(datum.x1, right))"},
                "y": {"signal": f"datum.depth * {_ROW_PIXELS}"},
                "height": {"value": _ROW_PIXELS - 1},
                "fill": {"scale": "reason", "field": "group"},
                "fillOpacity": [{"test": _IS_PALE, "value": 0.22}, {"value": 1}],
                "stroke": [{"test": "datum.id === chosen", "value": _INK}, {"value": "transparent"}],
                "strokeWidth": [{"test": "datum.id === chosen", "value": 3}, {"value": 0}],
                "cursor": {"value": "pointer"},
                "tooltip": {"field": "words"},
            }
        },
    }


def _write_labels() -> Spec:
    return {
        "type": "text",
        "from": {"data": "shown"},
        "interactive": False,
        "encode": {
            "update": {
                "x": {"signal": "scale('across', max(datum.x0, left)) + 4"},
                "y": {"signal": f"datum.depth * {_ROW_PIXELS} + {_ROW_PIXELS / 2}"},
                "baseline": {"value": "middle"},
                "fontSize": {"value": 12},
                "fontWeight": [{"test": "datum.id === chosen", "value": "bold"}, {"value": "normal"}],
                "fill": {"value": _INK},
                "opacity": [{"test": f"{_PIXELS} < {_LEAST_LABEL_PIXELS} || {_IS_PALE}", "value": 0}, {"value": 1}],
                "text": {"field": "label"},
                "limit": {"signal": f"max(1, {_PIXELS} - 8)"},
            }
        },
    }
