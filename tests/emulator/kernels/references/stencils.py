"""Stencils and dynamic programs, in the kernels' order of additions."""

import numpy as np
import numpy.typing as npt

from tests.emulator.kernels.truth import Expected, Given, reference

Floats = npt.NDArray[np.float32]


@reference("hotspot")
def _hotspot(given: Given) -> Expected:
    size = given.number("size")
    heat = given["heat"].reshape(size, size).astype(np.float32)
    power = given["power"].reshape(size, size)
    share, ambient = np.float32(given.real("share")), np.float32(given.real("ambient"))
    for _ in range(2):
        edged = np.pad(heat, 1, mode="edge")
        twice = np.float32(2) * heat
        vertical = edged[2:, 1:-1] + edged[:-2, 1:-1] - twice
        horizontal = edged[1:-1, 2:] + edged[1:-1, :-2] - twice
        heat = heat + share * (power + vertical + horizontal + (ambient - heat))
    return {"out": heat}


@reference("pathfinder")
def _pathfinder(given: Given) -> Expected:
    columns, rows = given.number("columns"), given.number("rows")
    costs = given["first_costs"]
    for row in given["wall"].reshape(rows, columns):
        edged = np.pad(costs, 1, mode="edge")
        costs = np.minimum(np.minimum(edged[:-2], costs), edged[2:]) + row
    return {"costs": costs}
