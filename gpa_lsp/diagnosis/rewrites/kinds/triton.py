"""Options of loops in Triton kernels."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpa_lsp.code.sources.trees import read_text, walk
from gpa_lsp.diagnosis.rewrites.model import Rewrite, RewriteKind, Site, quote, replace_node
from gpa_lsp.diagnosis.rewrites.python_functions import (
    RangeLoop,
    add_option,
    find_range_loops,
    is_constant,
    list_arguments,
)
from gpa_lsp.foundation.prose import count, say

if TYPE_CHECKING:
    from tree_sitter import Node


_MOST_TURNS = 32  # Loops of more iterations are not unrolled completely

_FACTOR = "loop_unroll_factor"


def _propose_triton_unroll(site: Site) -> Iterator[Rewrite]:
    """A loop of a Triton kernel that the compiler unrolls: ``tl.range(…, loop_unroll_factor=N)`` or ``tl.static_range(…)``."""
    copies = site.context.unroll_copies
    for loop in find_range_loops(site):
        if loop.has_option(_FACTOR):
            continue
        if copies is not None and copies > 1:
            yield Rewrite(
                title=say(
                    "Unroll the loop by {factor}: {range}",
                    factor=count(copies),
                    range=quote(f"{loop.language}.range(…, {_FACTOR}={copies})"),
                ),
                explanation=say(
                    "Loads of several iterations are then in flight together. Unrolling takes registers and code; results do not change. Older "
                    "versions of Triton do not know the option."
                ),
                edits=add_option(site, loop, f"{_FACTOR}={copies}"),
                is_preferred=True,
            )
        name = loop.call.child_by_field_name("function")
        if name is not None and _can_be_static(loop):
            yield Rewrite(
                title=say("Fully unroll the loop: {range}", range=quote(f"{loop.language}.static_range")),
                explanation=say(
                    "The range is known at compile time. {static_range} writes out every iteration with a constant counter; code size and compile "
                    "time grow with their number. Results do not change.",
                    static_range=quote("static_range"),
                ),
                edits=(replace_node(site.tree, name, f"{loop.language}.static_range"),),
            )


def _can_be_static(loop: RangeLoop) -> bool:
    """Whether a range can be unrolled at compile time: known bounds, few iterations where they can be counted, no early exit."""
    given = list_arguments(loop.call)
    if not all(is_constant(loop.function, one) for one in given):
        return False
    body = loop.node.child_by_field_name("body")
    if body is None or any(
        one.type in ("break_statement", "continue_statement", "return_statement") for one in walk(body)
    ):
        return False
    are_named = all(one.type == "integer" or any(part.type == "identifier" for part in walk(one)) for one in given)
    return are_named and _is_short(given)


def _is_short(given: "Sequence[Node]") -> bool:
    """Whether a range of numbers has few iterations; yes where it depends on a parameter."""
    numbers = [int(read_text(one), 0) for one in given if one.type == "integer"]
    if len(numbers) < len(given):
        return True
    return numbers[2:] != [0] and not range(*numbers)[_MOST_TURNS:]


_STAGES = 3  # Iterations in flight: one that computes while the loads of two are on their way


def _propose_triton_pipeline(site: Site) -> Iterator[Rewrite]:
    """A loop of a Triton kernel whose loads are issued some iterations ahead: ``tl.range(…, num_stages=N)``."""
    for loop in find_range_loops(site):
        if loop.has_option("num_stages") or not loop.has_call("load"):
            continue
        yield Rewrite(
            title=say("Load ahead: {range}", range=quote(f"{loop.language}.range(…, num_stages={_STAGES})")),
            explanation=say(
                "The compiler then software-pipelines the loop: {stages} in flight, loading for the next ones while it computes. The launch option "
                "of that name does so only for loads that feed a dot product. Each stage takes shared memory; results do not change.",
                stages=count(_STAGES, "iteration"),
            ),
            edits=add_option(site, loop, f"num_stages={_STAGES}"),
            is_preferred=True,
        )


REWRITES = {
    "triton_unroll": RewriteKind(language="python", optimizers=("loop_unrolling",), propose=_propose_triton_unroll),
    "triton_pipeline": RewriteKind(
        language="python", optimizers=("async_copy", "code_reordering"), propose=_propose_triton_pipeline
    ),
}
