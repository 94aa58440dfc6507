"""Integers and moved values that would take fewer bytes packed."""

from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.narrower_data import (
    SHARED_ARRAYS,
    Value,
    explain_no_traffic,
    find_narrower_data,
    name_places,
)
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import count, say


def match(subject: Subject) -> Found:
    """A kernel that DRAM or L2 limits runs faster when its integers (indices, labels, pixels, flags) are packed.

    Matched: global accesses of at least four bytes whose values no floating-point arithmetic reads or made. Half of the sectors that their data fills
    go: one halving, as each bit that the values do not use allows.
    Approximation: unpacking counts as free; it is a conversion or a shift for each value.

    Source: Starlight, Table 1 ("Compress Analyzed Data"), and section 4.4, which suggests it on the memory side alone.
    """
    why = explain_no_traffic(subject)
    if why is not None:
        return why
    data = find_narrower_data(subject, (Value.INTEGER, Value.UNKNOWN), 4)
    if data is None:
        return say("all global accesses of four bytes and more move floating-point values")
    return EliminationMatch(
        regions=data.regions,
        work=data.left,
        hint=say(
            "Pack the data of {places} into narrower integers (16 or 8 bits, or differences to a base per block), and unpack it in registers: "
            "each halving leaves half the bytes.",
            places=name_places(subject, data.rows),
        ),
        caveats=(
            say("The values must fit; their range is not known here."),
            SHARED_ARRAYS,
        ),
        reasons=(
            say(
                "{rows} with values that no floating-point arithmetic reads or made",
                rows=count(len(data.rows), "global access"),
            ),
        ),
    )


OPTIMIZER = Optimizer(
    name="data_compression",
    title="Compress the data",
    group="data width",
    needs_samples=False,
    is_outside=True,  # Other kernels and the host read and write the same arrays
    find=match,
)
