"""Address expressions from a file or a code generator → :class:`WrittenKernel`: :func:`read_expressions`.

::

    # stencil.expressions.toml
    kernel = "2D 5-point stencil"
    block = [256, 2]
    threads = ["n", "n"]           # updates along x, y, z: the grid is threads / block / fold, rounded up …
    # grid = [59, 7500]            # … or given itself, in blocks
    # fold = [1, 2]                # updates that each thread makes; the expressions stay those of one update
    registers = 32                 # of a thread
    # shared_bytes = 4096          # of a block
    # flops = 4                    # of one update; without them, arithmetic is no limiter
    # precision = "single"         # of these; "double" unless said otherwise

    [constants]                    # optional
    n = 15_000

    [[field]]
    name = "src"
    element_bytes = 8
    extents = ["n", "n"]           # elements along x, y, z, which indexes with several coordinates need
    # base_bytes = 64              # address of its first element, of which only the alignment matters
    loads = [["tidx - 1", "tidy"], ["tidx + 1", "tidy"], ["tidx", "tidy - 1"], ["tidx", "tidy + 1"]]

    [[field]]
    name = "dst"
    element_bytes = 8
    stores = ["tidx + tidy * n"]   # an index in elements, or [x, y, z]

Indexes are affine in ``threadIdx.x`` … ``threadIdx.z`` and ``blockIdx.x`` … ``blockIdx.z``; ``tidx`` is ``blockIdx.x * blockDim.x + threadIdx.x``,
and so are ``tidy`` and ``tidz`` for the other axes. ``blockDim`` and ``gridDim`` are numbers, as constants are. Nothing is executed: an expression
has numbers, names and ``+ - * / // % << >> ( )``, ``min``, ``max``, ``ceildiv``.

Source: Ernst et al. (2022), section 1.2. Control flow is resolved beforehand, and loops are written out.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.code.symbolic_accesses.forms import Form, add, make_constant, scale
from gpa_lsp.execution.volumes.expressions import (
    AccessedArray,
    AccessExpression,
    KernelAccesses,
    LaunchShape,
    cover_updates,
    fold_accesses,
    make_triple,
)
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.number_expressions import Names, Number, apply_to_numbers, calculate
from gpa_lsp.foundation.toml_tables import Table, read_toml

SUFFIX = ".expressions.toml"  # Usual end of such a file's name

_AXES = ("x", "y", "z")
_WIDTHS = (1, 2, 4, 8, 16)  # Bytes that one thread can access at once
_MOST_ACCESSES = 4096
_MOST_EXTENT = 1 << 40
_KEYS = frozenset(
    {
        "kernel", "block", "grid", "threads", "fold", "registers", "shared_bytes", "flops", "precision", "constants",
        "field",
    }
)  # fmt: skip
_FIELD_KEYS = frozenset({"name", "element_bytes", "extents", "base_bytes", "loads", "stores"})
_DIRECTIONS = {"loads": AccessKind.LOAD, "stores": AccessKind.STORE}

Value = Number | Form


class WrittenKernel(Struct, frozen=True, kw_only=True):
    """A kernel as its addresses, and how it is launched."""

    accesses: KernelAccesses  # of one thread, with all its updates
    launch: LaunchShape  # how the threads are laid out
    registers: int  # of a thread
    shared_bytes: int  # of a block


def read_expressions(path: Path) -> WrittenKernel:
    """Read a file; see the module for its keys.

    Raises:
        InputError: it cannot be read, or describes no kernel; says the line.
    """
    table = read_toml(path)
    if "launch" in table.content:
        message = "describes launches of a source, and no address expressions"
        raise InputError(message, path=path, remedy="give the source, or what was built, in its place")
    return _Reader(table, path.name.removesuffix(".toml").removesuffix(".expressions")).read()


def build_expressions(fields: Mapping[str, Mapping[str, Any]], launch: Mapping[str, Any]) -> WrittenKernel:
    """Read a kernel from Python values.

    Args:
        fields: name of each field → the other keys of its table.
        launch: the keys outside of fields.

    Raises:
        InputError: they describe no kernel; says the key.
    """
    content = {**launch, "field": [{**dict(about), "name": name} for name, about in fields.items()]}
    return _Reader(Table(content=content, place=(), lines=None, path=None), "kernel").read()


class _Reader:
    """Reads one kernel.

    Args:
        root: all of it.
        name: of the kernel where none is given.
    """

    def __init__(self, root: Table, name: str) -> None:
        root.check_keys(_KEYS, "a kernel")
        self._root = root
        self._name = name
        self._names = Names(where="under constants")
        constants = root.read_table("constants")
        for constant in constants.content:
            self._names.add(constant, partial(constants.read_number, constant, self._names.find))
        self._launch = self._read_launch()
        self._values = self._list_values()

    def read(self) -> WrittenKernel:
        root, launch, find = self._root, self._launch, self._names.find
        flops = root.read_number("flops", find) if "flops" in root.content else None
        if flops is not None and not 0 <= flops < float("inf"):
            raise root.refuse(f"flops is {flops}", remedy="give a number of at least 0", key="flops")
        arrays, accesses = self._read_fields()
        kernel = KernelAccesses(
            name=root.read_text("kernel", self._name),
            arrays=arrays,
            accesses=accesses,
            flops_per_thread=None if flops is None else float(flops),
            flops_are_double=root.read_choice("precision", ("double", "single"), "double") == "double",
        )
        is_folded = launch.fold != (1, 1, 1)
        try:
            folded = fold_accesses(kernel, launch.fold) if is_folded else kernel
        except InputError as error:
            raise root.locate(error, "fold") from None
        return WrittenKernel(
            accesses=folded,
            launch=launch,
            registers=root.read_integer("registers", find, least=1, most=255),
            shared_bytes=root.read_integer("shared_bytes", find, 0, most=1 << 20),
        )

    def _read_launch(self) -> LaunchShape:
        root, find = self._root, self._names.find
        block, fold = root.read_dimensions("block", find), root.read_dimensions("fold", find, (1, 1, 1))
        if ("grid" in root.content) == ("threads" in root.content):
            given = "grid" in root.content
            message = "grid and threads are both given" if given else "neither grid nor threads is given"
            remedy = "give the grid in blocks, or the updates it must cover"
            raise root.refuse(message, remedy=remedy, key="grid" if given else None)
        if "threads" in root.content:
            return cover_updates(root.read_dimensions("threads", find), block, fold)
        grid = root.read_dimensions("grid", find)
        x, y, z = (blocks * size * count for blocks, size, count in zip(grid, block, fold, strict=True))
        return LaunchShape(block=block, grid=grid, updates=(x, y, z), fold=fold)

    def _list_values(self) -> Mapping[str, Value]:
        """Values of CUDA's names; symbols 0 to 2 are the thread's index, 3 to 5 the block's."""
        found: dict[str, Value] = {}
        for axis, letter in enumerate(_AXES):
            thread, block = Form({(axis,): 1}), Form({(3 + axis,): 1})
            size = self._launch.block[axis]
            found |= {f"threadIdx.{letter}": thread, f"blockIdx.{letter}": block, f"blockDim.{letter}": size}
            found |= {f"gridDim.{letter}": self._launch.grid[axis], f"tid{letter}": add(thread, block, size)}
        return found

    def _find(self, name: str) -> Value:
        return self._values[name] if name in self._values else self._names.find(name)

    def _read_fields(self) -> tuple[tuple[AccessedArray, ...], tuple[AccessExpression, ...]]:
        fields = self._root.read_tables("field", "fields")
        arrays: list[AccessedArray] = []
        accesses: list[AccessExpression] = []
        for field in fields:
            field.check_keys(_FIELD_KEYS, "a field")
            width = field.read_integer("element_bytes", self._names.find)
            if width not in _WIDTHS:
                raise field.refuse(f"element_bytes is {width}", remedy="give 1, 2, 4, 8 or 16", key="element_bytes")
            strides = self._read_strides(field)
            base = field.read_integer("base_bytes", self._names.find, 0, most=_MOST_EXTENT)
            name = field.read_text("name")
            if any(name == one.name for one in arrays):
                raise field.refuse(f"a second field is named {name!r}", remedy="put all its accesses into one table")
            for key, kind in _DIRECTIONS.items():
                for number in range(len(field.read_list(key))):
                    address = scale(self._read_index(field, key, number, strides), width)
                    accesses.append(self._build_access(address, len(arrays), kind, width))
            known = tuple(width * stride for stride in strides) or None
            arrays.append(AccessedArray(name=name, base_bytes=base, strides_bytes=known))
        if not accesses:
            remedy = 'start with [[field]], name = "…", element_bytes = 8 and loads = ["tidx"]'
            raise self._root.refuse("no field is loaded or stored", remedy=remedy)
        if len(accesses) > _MOST_ACCESSES:
            raise self._root.refuse(f"{len(accesses)} accesses", remedy=f"give at most {_MOST_ACCESSES}")
        return tuple(arrays), tuple(accesses)

    def _read_strides(self, field: Table) -> tuple[int, ...]:
        """Distances of neighbours along x, y and z in elements; empty where nothing is said of the extents."""
        if "extents" not in field.content:
            return ()
        x, y, _ = field.read_dimensions("extents", self._names.find, most=_MOST_EXTENT)
        return (1, x, x * y)[: len(field.read_list("extents"))]

    def _read_index(self, field: Table, key: str, number: int, strides: tuple[int, ...]) -> Form:
        """Elements from the field's first one."""
        index = field.read_list(key)[number]
        parts = index if isinstance(index, (list, tuple)) else [index]
        if not 1 <= len(parts) <= 3:
            raise field.refuse(f"an index of {len(parts)} parts", remedy="give one to three", key=key, number=number)
        if len(parts) > max(1, len(strides)):
            message = f"an index of {len(parts)} coordinates of a field with {len(strides) or 'no'} extents"
            remedy = 'give as many, such as extents = ["n", "n"]'
            raise field.refuse(message, remedy=remedy, key=key, number=number)
        total = make_constant(0)
        for part, stride in zip(parts, strides or (1,), strict=False):
            total = add(total, self._read_part(field, key, number, part), stride)
        return total

    def _read_part(self, field: Table, key: str, number: int, part: Any) -> Form:
        try:
            value = calculate(part, self._find, _apply) if isinstance(part, str) else part
        except InputError as error:
            raise field.locate(error, key, number) from None
        if isinstance(value, Form):
            return value
        if isinstance(value, bool) or not isinstance(value, int):
            message = f"index {str(part)[:60]!r} is no whole number of elements"
            raise field.refuse(
                message, remedy='write an expression in quotes, such as "tidx + 1"', key=key, number=number
            )
        return make_constant(value)

    def _build_access(self, address: Form, array: int, kind: AccessKind, width: int) -> AccessExpression:
        """An access, with a coefficient of the global index where those of thread and block are multiples of it."""
        threads, blocks = (
            make_triple([address.terms.get((first + axis,), 0) for axis in range(3)]) for first in (0, 3)
        )
        size = self._launch.block
        is_global = [block == step * count for block, step, count in zip(blocks, threads, size, strict=True)]
        return AccessExpression(
            array=array,
            kind=kind,
            element_bytes=width,
            constant_bytes=address.terms.get((), 0),
            global_bytes=make_triple([step if one else 0 for step, one in zip(threads, is_global, strict=True)]),
            thread_bytes=make_triple([0 if one else step for step, one in zip(threads, is_global, strict=True)]),
            block_bytes=make_triple([0 if one else step for step, one in zip(blocks, is_global, strict=True)]),
        )


def _apply(operator: str, left: Value, right: Value) -> Value:
    """Arithmetic that stays affine.

    Raises:
        InputError: it does not, or divides by zero.

    >>> _apply("//", add(make_constant(8), Form({(0,): 4})), 2).terms
    {(): 4, (0,): 2}
    """
    if not isinstance(left, Form) and not isinstance(right, Form):
        return apply_to_numbers(operator, left, right)
    if operator in ("+", "-") and not isinstance(left, float) and not isinstance(right, float):
        return add(_lift(left), _lift(right), 1 if operator == "+" else -1)
    if operator == "*" and isinstance(left, int) and isinstance(right, Form):
        return scale(right, left)
    if isinstance(left, Form) and isinstance(right, int):
        if operator == "*" or (operator == "<<" and 0 <= right <= 60):
            return scale(left, right if operator == "*" else 1 << right)
        if operator in ("/", "//") and right and not any(step % right for step in left.terms.values()):
            return Form({symbol: step // right for symbol, step in left.terms.items()})
    message = f"{operator!r} of threads' or blocks' indexes gives no affine address"
    raise InputError(message, remedy="write it as multiples of threadIdx, blockIdx or tidx, and a constant")


def _lift(value: int | Form) -> Form:
    return value if isinstance(value, Form) else make_constant(value)
