"""Fragments that meet become one: :func:`merge_fragments`."""

import numpy as np

from gpa_lsp.execution.emulator.engine.fragments import Fragment, Link, Registers, compact, lift, list_live_slots
from gpa_lsp.execution.emulator.engine.geometry import WarpSet
from gpa_lsp.execution.emulator.engine.values import Value, is_same, scatter_rows, select


def merge_fragments(fragments: list[Fragment]) -> Fragment:
    """One fragment of all their lanes, in the order of block, warp and lane.

    Args:
        fragments: at least one; all at the same segment of the same frame, with no lane in common.
    """
    own = fragments[0].merge_all(fragments)
    if own is not None:
        return own
    by_warps: dict[int, Fragment] = {}
    for fragment in fragments:
        other = by_warps.get(id(fragment.warps))
        by_warps[id(fragment.warps)] = fragment if other is None else _merge_masks(other, fragment)
    left = list(by_warps.values())
    if len(left) > 1:
        _rebase(left)
    while len(left) > 1:
        left = _merge_compacted(left)
    merged = left[0]
    compact(merged)
    return merged


def _merge_masks(first: Fragment, second: Fragment) -> Fragment:
    """Two over the same warps. Only registers whose arrays differ are touched."""
    mask = first.active()
    levels: list[Registers] = []
    function = first.frame.function
    frames = [first.frame]
    while frames[-1].parent is not None:
        frames.append(frames[-1].parent)
    for registers, others, live, frame in zip(
        first.levels, second.levels, list_live_slots(first), reversed(frames), strict=True
    ):
        function = frame.function
        out = registers.copy()
        for slot in live:
            if not is_same(registers[slot], others[slot]):
                out[slot] = select(mask, registers[slot], others[slot], function.dtypes[slot])
        levels.append(out)
    count = first.count + second.count
    merged = Fragment(
        batch=first.batch,
        warps=first.warps,
        mask=None if count == first.warps.lanes else mask | second.active(),
        count=count,
        registers=levels[-1],
        callers=tuple(levels[:-1]),
        frame=first.frame,
        link=first.link,
    )
    merged.segment = first.segment
    return merged


def _depth(link: Link | None) -> int:
    depth = 0
    while link is not None:
        depth, link = depth + 1, link.link
    return depth


def _rebase(fragments: list[Fragment]) -> None:
    """Hang all fragments on the same larger warp set, or leave the one that lies over it: their nearest in common."""
    while True:
        depths = [_depth(fragment.link) for fragment in fragments]
        deepest = max(depths)
        above = {id(fragment.link.warps) if fragment.link else 0 for fragment in fragments}
        if len(above) == 1 and deepest == min(depths):
            return
        tops = [i for i, depth in enumerate(depths) if depth == deepest - 1]
        bottoms = [i for i, depth in enumerate(depths) if depth == deepest]
        if len(tops) + len(bottoms) == len(fragments) and len(tops) == 1:
            top = fragments[tops[0]].warps
            if all(_parent(fragments[i]) is top for i in bottoms):
                return
        for i in bottoms:
            _skip_level(fragments[i])


def _parent(fragment: Fragment) -> WarpSet | None:
    return fragment.link.warps if fragment.link is not None else None


def _skip_level(fragment: Fragment) -> None:
    """Hang a fragment on the grandparent of its warp set."""
    link = fragment.link
    assert link is not None
    above = link.link
    if above is None:
        return
    gathered: list[Registers] = []
    for depth, registers in enumerate(fragment.levels):
        known = depth < len(link.levels) and depth < len(above.levels)
        marks: Registers = [None] * len(registers)
        if known:
            size = min(len(registers), len(link.gathered[depth]), len(above.gathered[depth]))
            mine, before, parents = link.gathered[depth], link.levels[depth], above.gathered[depth]
            for slot in range(size):
                if registers[slot] is mine[slot] and before[slot] is parents[slot]:
                    marks[slot] = registers[slot]
        gathered.append(marks)
    fragment.link = Link(above.warps, above.rows[link.rows], above.levels, gathered, above.link)


def _merge_compacted(fragments: list[Fragment]) -> list[Fragment]:
    """One step: siblings become one over the union of their warps, or over their parent's."""
    parents = [_parent(fragment) for fragment in fragments]
    top = next((fragment for fragment in fragments if any(parent is fragment.warps for parent in parents)), None)
    if top is not None:
        merged = top
        for fragment in fragments:
            if fragment is not top:
                merged = _merge_masks(merged, lift(fragment))
        return [merged]
    parent = parents[0]
    assert parent is not None
    links = [fragment.link for fragment in fragments if fragment.link is not None]
    rows = np.unique(np.concatenate([link.rows for link in links]))
    if 2 * len(rows) >= len(parent.ids):
        lifted = [lift(fragment) for fragment in fragments]
        merged = lifted[0]
        for fragment in lifted[1:]:
            merged = _merge_masks(merged, fragment)
        return [merged]
    warps = WarpSet(parent.blocks, parent.ids[rows])
    widened = [_widen(fragment, warps, rows) for fragment in fragments]
    merged = widened[0]
    for fragment in widened[1:]:
        merged = _merge_masks(merged, fragment)
    return [merged]


def _widen(fragment: Fragment, warps: WarpSet, rows: Value) -> Fragment:
    """A compacted fragment over a few more warps of the set it was compacted from."""
    link = fragment.link
    assert link is not None
    places = np.searchsorted(rows, link.rows)
    mask = np.zeros(warps.lanes, np.bool_)
    mask.reshape(-1, 32)[places] = True if fragment.mask is None else fragment.mask.reshape(-1, 32)
    levels: list[Registers] = []
    for registers, live in zip(fragment.levels, list_live_slots(fragment), strict=True):
        out = [value if not value.ndim else value.dtype.type(0) for value in registers]
        for slot in live:
            value = registers[slot]
            if value.ndim:
                out[slot] = scatter_rows(value, places, fragment.mask, value.dtype.type(0), warps.lanes)
        levels.append(out)
    empty: list[Registers] = [[] for _ in levels]
    widened = Fragment(
        batch=fragment.batch,
        warps=warps,
        mask=None if fragment.count == warps.lanes else mask,
        count=fragment.count,
        registers=levels[-1],
        callers=tuple(levels[:-1]),
        frame=fragment.frame,
        link=Link(link.warps, rows, [], empty, link.link),
    )
    widened.segment = fragment.segment
    return widened
