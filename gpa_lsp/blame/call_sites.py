"""The calls from one function section to another in a kernel, and which scoreboards are held when they are made."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpa_lsp.blame.barriers import SCOREBOARD_COUNT
from gpa_lsp.blame.pending import Pending, find_pending
from gpa_lsp.blame.view import view_function
from gpa_lsp.blame.work import WorkBudget
from gpa_lsp.rows.model import Kernel

MOST_SITES = 64
"""Calls of one function that are looked at: those that issue most often."""

_ALL_SCOREBOARDS = (1 << SCOREBOARD_COUNT) - 1


class Site(NamedTuple):
    """A call.

    Attributes:
        caller: index into the kernel's functions.
        instruction: the CALL, as a row of the caller.
        issues: how often it issued, in samples.
    """

    caller: int
    instruction: int
    issues: float


class CallSites:
    """The calls between the sections of a kernel.

    Attributes:
        starts: of each function of the kernel the row of its first instruction, and the number of rows.
        of: called function → its calls, the most frequent first; functions are indexes into the kernel's.

    Calls through registers, and of functions that are not in the profile, are not known.
    """

    __slots__ = ("_counts", "_held", "_kernel", "of", "starts")

    def __init__(self, kernel: Kernel, counts: npt.NDArray[np.float64]) -> None:
        self._kernel, self._counts = kernel, counts
        self.starts = kernel.rows.first_rows.tolist()
        self.of: Mapping[int, Sequence[Site]] = self._find_sites()
        self._held: dict[int, Mapping[int, tuple[Pending, ...]]] = {}

    def _find_sites(self) -> dict[int, list[Site]]:
        number_of = {function.name: number for number, function in enumerate(self._kernel.functions)}
        found: dict[int, list[Site]] = defaultdict(list)
        for caller, function in enumerate(self._kernel.functions):
            for call in function.graph.calls if function.graph is not None else ():
                callee = number_of.get(call.symbol) if call.symbol is not None else None
                if callee is not None and callee != caller:
                    issues = float(self._counts[self.starts[caller] + call.instruction])
                    found[callee].append(Site(caller, call.instruction, issues))
        return {
            callee: sorted(sites, key=lambda site: (-site.issues, site.caller, site.instruction))[:MOST_SITES]
            for callee, sites in found.items()
        }

    def find_held(self, site: Site) -> tuple[Pending, ...]:
        """The instructions of the caller that may still hold a scoreboard when the call is made."""
        if site.caller not in self._held:
            self._held[site.caller] = self._find_held_by(site.caller)
        return self._held[site.caller].get(site.instruction, ())

    def _find_held_by(self, caller: int) -> Mapping[int, tuple[Pending, ...]]:
        """For all calls of a function: what they would wait for if they waited for every scoreboard."""
        function, first_row = self._kernel.functions[caller], self.starts[caller]
        view = view_function(self._kernel, function, self._counts[first_row : self.starts[caller + 1]])
        if view is None:
            return {}
        calls = [site.instruction for sites in self.of.values() for site in sites if site.caller == caller]
        is_call = np.zeros(len(view), dtype=np.bool_)
        is_call[calls] = True
        own_mask = view.control.wait_mask
        waiting = replace(view.control, wait_mask=np.where(is_call, _ALL_SCOREBOARDS, own_mask).astype(np.uint8))
        held = find_pending(replace(view, control=waiting), is_call, WorkBudget.for_function(len(view)))
        return {
            row: tuple(one for one in pending if not own_mask[row] >> one.scoreboard & 1)
            for row, pending in held.at_masks.items()
        }
