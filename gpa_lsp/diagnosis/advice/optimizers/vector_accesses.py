"""Neighbouring words that a thread loads, or could load, in one access."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.opcodes import Access
from gpa_lsp.diagnosis.advice.blamed_stalls import build_counted_regions, build_regions, find_edges
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.naming import describe_place
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.advice.pricing import WAITING
from gpa_lsp.diagnosis.advice.residency import count_waves, measure_states, name_whole
from gpa_lsp.diagnosis.advice.traffic_floor import measure_floor
from gpa_lsp.diagnosis.advice.work_left import count_work_left
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Code, number, percent, say, size
from gpa_lsp.kernel.dataflow.accesses import GLOBAL_SPACES, WIDEST_ACCESS_BYTES, count_access_bytes, mark_accesses

_NARROW_BYTES = 4
_WHOLE_SECTORS = 0.9  # The least sectors over those touched: threads take neighbouring elements
_STALLED_SHARE = 0.2  # Of all samples, stalled on narrow loads: what is short is bytes in flight


def match(subject: Subject) -> Found:
    """Loads of 16 bytes have four times the bytes in flight of loads of 4 bytes, at a quarter of the requests.

    Matched: coalesced loads of at most 4 bytes per thread on which most warps are stalled while DRAM is not busy: too few bytes are in flight
    (Little's law). The bound is the width gained, or the unit that is busiest with the same bytes.
    """
    rows = subject.rows
    widths = rows.spread_by_mnemonic(count_access_bytes, unknown=0)
    narrow = mark_accesses(rows, GLOBAL_SPACES, (Access.LOAD,)) & (widths > 0) & (widths <= _NARROW_BYTES)
    floor = measure_floor(subject)
    if not narrow.any() or floor is None:
        return say("no global load is narrower than {most}", most=size(2 * _NARROW_BYTES))
    if floor.sectors < _WHOLE_SECTORS:
        return say("neighbouring threads do not load neighbouring elements")
    edges = find_edges(subject, narrow, (WAITING,))
    share = _measure_share(subject, edges, narrow)
    if share < _STALLED_SHARE:
        return say(
            "{share} of the {whole} are stalled on narrow loads",
            share=percent(share),
            whole=name_whole(subject),
        )
    return _describe(subject, edges, narrow, widths, share)


def _describe(
    subject: Subject,
    edges: npt.NDArray[np.int64],
    narrow: npt.NDArray[np.bool_],
    widths: npt.NDArray[np.int64],
    share: float,
) -> EliminationMatch:
    """Describe the effect of wider loads, by the load with most stalls."""
    rows = subject.rows
    executed = np.where(narrow, subject.executed, 0)
    by_row = np.bincount(subject.edges.def_row[edges], weights=subject.edges.all_samples[edges], minlength=len(rows))
    hottest = rows.find_heaviest(np.arange(len(rows)), by_row if len(edges) else executed)
    factor = WIDEST_ACCESS_BYTES // int(widths[hottest])
    # With fewer threads in all, a grid that was one wave has fewer warps resident: their bytes in flight stay the same.
    waves = count_waves(subject)
    more = factor if waves is None else min(float(factor), max(1.0, waves))
    gone = np.where(narrow, 1 - 1 / factor, 0.0)
    return EliminationMatch(
        work=count_work_left(subject, executions=gone, lines=np.zeros(len(rows))),
        most=float(factor),
        states={} if subject.total_samples else {WAITING: share * (1 - 1 / more)},
        regions=build_regions(subject, edges, 1 - 1 / more) or build_counted_regions(subject, executed, edges=edges),
        hint=say(
            "Let each thread take {count} neighbouring elements with one access: make {load} a {type}.",
            count=number(factor),
            load=describe_place(subject, hottest),
            type=Code(text="float4" if widths[hottest] == _NARROW_BYTES else f"{WIDEST_ACCESS_BYTES}-byte load"),
        ),
        caveats=(
            say(
                "Addresses must be multiples of {bytes}; the last elements need a scalar loop.",
                bytes=size(WIDEST_ACCESS_BYTES),
            ),
            say("The grid then needs fewer threads, by the same factor: keep enough blocks for all SMs."),
        ),
        reasons=(
            say(
                "{share} of the {whole} are stalled on loads of {width} per thread",
                share=percent(share),
                whole=name_whole(subject),
                width=size(int(widths[hottest])),
            ),
        ),
    )


def _measure_share(subject: Subject, edges: npt.NDArray[np.int64], narrow: npt.NDArray[np.bool_]) -> float:
    """The part of their time that warps are stalled on narrow loads; without samples, their part of all waiting for memory by executions."""
    if subject.total_samples:
        return float(subject.edges.all_samples[edges].sum()) / subject.total_samples
    loads = mark_accesses(subject.rows, GLOBAL_SPACES, (Access.LOAD,))
    executed = subject.executed
    part = int(executed[narrow].sum()) / max(1, int(executed[loads].sum()))
    return part * measure_states(subject, (WAITING,))


OPTIMIZER = Optimizer(
    name="vector_accesses",
    title="Load wider",
    group="latency",
    needs_samples=False,
    needs_counters=("global_sectors", "global_sectors_ideal"),
    find=match,
)
