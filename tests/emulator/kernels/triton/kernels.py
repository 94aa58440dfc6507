"""Kernels in Triton, and what compiled them: ``python kernels.py`` where Triton is installed writes the PTX beside this file; see README.md."""

import re
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, out, n, block: tl.constexpr):
    place = tl.program_id(0) * block + tl.arange(0, block)
    inside = place < n
    tl.store(out + place, tl.load(x + place, mask=inside) + tl.load(y + place, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, columns, block: tl.constexpr):
    row = tl.program_id(0) * columns
    column = tl.arange(0, block)
    value = tl.load(x + row + column, mask=column < columns, other=-float("inf"))
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row + column, power / tl.sum(power, axis=0), mask=column < columns)


@triton.jit
def matmul(  # noqa: PLR0917
    a, b, c, depth, columns, tile_rows: tl.constexpr, tile_columns: tl.constexpr, tile_depth: tl.constexpr
):
    row = tl.program_id(0) * tile_rows + tl.arange(0, tile_rows)
    column = tl.program_id(1) * tile_columns + tl.arange(0, tile_columns)
    step = tl.arange(0, tile_depth)
    a += row[:, None] * depth + step[None, :]
    b += step[:, None] * columns + column[None, :]
    total = tl.zeros((tile_rows, tile_columns), dtype=tl.float32)
    for _ in range(0, depth, tile_depth):
        total = tl.dot(tl.load(a), tl.load(b), total)
        a += tile_depth
        b += tile_depth * columns
    tl.store(c + row[:, None] * columns + column[None, :], total)


@triton.jit
def attention(  # noqa: PLR0917
    q, k, v, out, keys, tile_rows: tl.constexpr, tile_keys: tl.constexpr, width: tl.constexpr
):
    row = tl.program_id(0) * tile_rows + tl.arange(0, tile_rows)
    key = tl.arange(0, tile_keys)
    feature = tl.arange(0, width)
    query = tl.load(q + row[:, None] * width + feature[None, :])
    most = tl.full((tile_rows,), -float("inf"), tl.float32)
    weight = tl.zeros((tile_rows,), tl.float32)
    total = tl.zeros((tile_rows, width), tl.float32)
    for first in range(0, keys, tile_keys):
        place = (first + key)[:, None] * width + feature[None, :]
        score = tl.dot(query, tl.trans(tl.load(k + place)))
        higher = tl.maximum(most, tl.max(score, axis=1))
        power = tl.exp(score - higher[:, None])
        fade = tl.exp(most - higher)
        weight = weight * fade + tl.sum(power, axis=1)
        total = tl.dot(power.to(tl.float16), tl.load(v + place), total * fade[:, None])
        most = higher
    tl.store(out + row[:, None] * width + feature[None, :], total / weight[:, None])


BUILDS = (
    ("add", add, 80, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"block": 512}),
    ("softmax", softmax, 90, {"x": "*fp32", "out": "*fp32", "columns": "i32"}, {"block": 512}),
    (
        "matmul",
        matmul,
        80,
        {"a": "*fp16", "b": "*fp16", "c": "*fp32", "depth": "i32", "columns": "i32"},
        {"tile_rows": 32, "tile_columns": 64, "tile_depth": 32},
    ),
    (
        "matmul",
        matmul,
        90,
        {"a": "*fp16", "b": "*fp16", "c": "*fp32", "depth": "i32", "columns": "i32"},
        {"tile_rows": 64, "tile_columns": 64, "tile_depth": 64},
    ),
    (
        "attention",
        attention,
        90,
        {"q": "*fp16", "k": "*fp16", "v": "*fp16", "out": "*fp32", "keys": "i32"},
        {"tile_rows": 64, "tile_keys": 64, "width": 32},
    ),
)


_FOLDER = re.compile(r"^(\s*\.file\s+\d+ \")[^\"]*/", re.MULTILINE)
_COMPILED_IN = re.compile(r"^\.b8 \d+( +// DW_AT_comp_dir\n(?:\.b8 [1-9]\d*\n)*)", re.MULTILINE)


def forget_folders(ptx: str) -> str:
    """The same without folders of this machine: files by their names, and as many bytes of ``././`` for the folder compiled in."""
    ptx = _FOLDER.sub(r"\1", ptx)
    return _COMPILED_IN.sub(lambda found: _write_dots(found[1]), ptx)


def _write_dots(rest: str) -> str:
    first, *others = rest.splitlines()
    codes = [46 + place % 2 for place in range(1 + len(others))]
    return "\n".join([f".b8 {codes[0]}{first}", *(f".b8 {code}" for code in codes[1:]), ""])


def main() -> None:
    """Write all PTX."""
    folder = Path(__file__).parent
    for name, function, architecture, types, constants in BUILDS:
        signature = types | dict.fromkeys(constants, "constexpr")
        # Arrays and sizes are multiples of 16, as Triton finds of most launches: loads are wide and copies asynchronous.
        attributes = {(place,): [["tt.divisibility", 16]] for place in range(len(types))}
        source = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=attributes)
        built = triton.compile(source, target=GPUTarget("cuda", architecture, 32), options={"num_stages": 2})
        (folder / f"{name}_sm_{architecture}.ptx").write_text(forget_folders(built.asm["ptx"]), encoding="utf-8")
        print(name, architecture, f"{32 * built.metadata.num_warps} threads, {built.metadata.shared} bytes shared")


if __name__ == "__main__":
    main()
