"""Stencils and dynamic programs, in the kernels' order of additions."""

import numpy as np
import numpy.typing as npt

from tests.emulator.kernels.truth import Expected, Given, reference

Floats = npt.NDArray[np.float32]


@reference("stencil_1d")
def _stencil_1d(given: Given) -> Expected:
    n = given.number("n")
    values = np.pad(given["in"][:n], 3)
    total = np.zeros(n, dtype=np.float32)
    for k in range(-3, 4):
        total = total + values[3 + k : 3 + k + n] * (np.float32(1) / np.float32(1 + k * k))
    out = given["out"]
    out[:n] = total
    return {"out": out}


@reference("stencil_5point")
def _stencil_5point(given: Given) -> Expected:
    rows = given["in"].reshape(given.number("height"), given.number("width"))
    out = rows.copy()
    around = rows[1:-1, :-2] + rows[1:-1, 2:] + rows[:-2, 1:-1] + rows[2:, 1:-1]
    out[1:-1, 1:-1] = np.float32(0.5) * rows[1:-1, 1:-1] + np.float32(0.125) * around
    return {"out": out}


@reference("stencil_box9")
def _stencil_box9(given: Given) -> Expected:
    height, width = given.number("height"), given.number("width")
    rows = np.pad(given["in"].reshape(height, width).astype(np.int32), 1, mode="edge")
    total = sum(rows[y : y + height, x : x + width] for y in range(3) for x in range(3))
    return {"out": ((total + 4) // 9).astype(np.uint8)}


@reference("star_3d")
def _star_3d(given: Given) -> Expected:
    shape = (given.number("depth"), given.number("height"), given.number("width"))
    field = given["in"].reshape(shape)
    out = given["out"].reshape(shape)

    def move(dz: int, dy: int, dx: int) -> npt.NDArray[np.generic]:
        return field[4 + dz : shape[0] - 4 + dz, 4 + dy : shape[1] - 4 + dy, 4 + dx : shape[2] - 4 + dx]

    total = move(0, 0, 0)
    for k in range(1, 5):
        around = move(0, 0, -k) + move(0, 0, k) + move(0, -k, 0) + move(0, k, 0) + move(-k, 0, 0) + move(k, 0, 0)
        total = total + around * (0.25 / k)
    out[4:-4, 4:-4, 4:-4] = total
    return {"out": out}


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


@reference("sequence_alignment")
def _sequence_alignment(given: Given) -> Expected:
    columns, penalty = given.number("columns"), given.number("penalty")
    tables = given["table"].reshape(-1, columns, columns)
    scores = given["scores"].reshape(tables.shape)
    for row in range(1, 17):
        for column in range(1, 17):
            diagonal = tables[:, row - 1, column - 1] + scores[:, row, column]
            gap = np.maximum(tables[:, row - 1, column], tables[:, row, column - 1]) - penalty
            tables[:, row, column] = np.maximum(diagonal, gap)
    return {"table": tables}


@reference("game_of_life")
def _game_of_life(given: Given) -> Expected:
    words = given["field"].reshape(-1, 32)
    cells = (words[:, :, None] >> np.arange(32, dtype=np.uint32) & np.uint32(1)).astype(np.int32)
    for _ in range(given.number("generations")):
        edged = np.pad(cells, ((0, 0), (1, 1), (1, 1)))
        near = sum(edged[:, y : y + 32, x : x + 32] for y in range(3) for x in range(3)) - cells
        cells = ((near == 3) | ((cells == 1) & (near == 2))).astype(np.int32)
    return {"field": (cells.astype(np.uint32) << np.arange(32, dtype=np.uint32)).sum(axis=2, dtype=np.uint32)}


@reference("mandelbrot")
def _mandelbrot(given: Given) -> Expected:
    width, height = given.number("width"), given.number("height")
    step = np.float32(given.real("step"))
    real = (
        np.float32(given.real("left"))
        + np.arange(width, dtype=np.float32)[None, :] * step
        + np.zeros((height, 1), dtype=np.float32)
    )
    imaginary = (
        np.float32(given.real("top"))
        + np.arange(height, dtype=np.float32)[:, None] * step
        + np.zeros((1, width), dtype=np.float32)
    )
    a, b = real.copy(), imaginary.copy()
    turns = np.zeros((height, width), dtype=np.uint8)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(100):
            inside = a * a + b * b <= np.float32(4)
            next_a = a * a - b * b + real
            b = np.where(inside, np.float32(2) * a * b + imaginary, b)
            a = np.where(inside, next_a, a)
            turns += inside
    return {"out": turns}
