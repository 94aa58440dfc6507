"""The TOML beside a source → :class:`~gpa_lsp.execution.launches.launch.LaunchDescription`.

::

    # saxpy.launch.toml, beside saxpy.cu
    [constants]                              # optional: numbers that several launches use in expressions
    n = 1_000_000

    [[launch]]
    kernel = "saxpy"                         # mangled, readable or bare name
    title = "a million elements"             # optional
    block = 256                              # or [x, y, z]
    threads = "n"                            # or [x, y, z]: the grid is threads / block / fold, rounded up …
    # grid = "ceildiv(n, 256)"               # … or given itself
    # shared_bytes = "block_x * 4"           # dynamic shared memory
    # cluster = 2                            # or [x, y, z]: blocks of a cluster, where the kernel is not compiled for clusters
    arguments = [                            # in the order of the parameters
      { name = "n", type = "int", value = "n" },
      { name = "a", type = "float", value = 2.5 },
      { name = "x", type = "float", count = "n", fill = "uniform", low = -1, high = 1, seed = 7 },
      { name = "y", type = "float", count = "n" },
    ]

Numbers may be expressions in quotes: integers, ``+ - * / // % << >> ( )``, ``min``, ``max``, ``ceildiv``, constants, scalar arguments by
name in whatever order, and ``block_x`` … ``block_z``, ``grid_x`` …, ``threads_x`` …

What an argument is follows from its keys:

* a number has ``value``; a vector (``float4``) a list of them;
* an array, whose address is passed, has ``count`` or ``shape``; ``fill`` is ``zeros`` (unless said otherwise), ``constant`` (``value``),
  ``sequence`` (``low``, ``step``), ``uniform`` (``low`` ≤ x < ``high``; 0 to 1, for integers 0 to 100), ``normal`` (mean ``low``, deviation
  ``high``), ``permutation``, ``values`` (``values = [ … ]``, over and over) or ``file`` (``file = "in.npy"``, or raw bytes; below the
  description's folder; the count may be left out); ``seed`` chooses among random ones; ``offset`` passes the address of that element;
  ``guessed = true`` says that nobody knows its size, so that what is touched beyond its end is no fault;
* an array that shares another one's memory has ``alias_of`` (a name above) and perhaps ``offset``;
* a structure has ``members``, each again a number (several for an array in the structure), an array (its pointer) or a structure, laid out as
  C++ does or ``at`` a given byte; ``size`` where it is larger than that;
* a texture or surface has ``width``, perhaps ``height``, ``depth``, ``layers`` (six for a cubemap), ``channels``, ``filter`` (``nearest``,
  ``linear``), ``address`` (``clamp``, ``border``, ``wrap``, ``mirror``), ``normalized``, ``reads_normalized``, and what fills an array;
  behind those of the parameters stand texture references, with the name of the ``.texref`` or of the variable of eight bytes that holds the handle.

``variables = [ … ]`` fills ``__device__`` and ``__constant__`` variables by name with arrays.

In recorded launches arrays hold addresses of others. Such arrays have ``base_address``, and textures whose handle memory holds ``handle``; those
that no argument names stand in ``memory = [ … ]``.

``guesses = [ … ]`` names what nobody knows: ``"block"``, ``"threads"``, ``"grid"``, numbers, and arrays, textures and variables of the
module whose contents are made up. Faults that depend on them are notes. ``launch_schema.json`` beside this module says the same to editors.
"""

import shlex
from collections.abc import Collection
from functools import partial
from pathlib import Path

from gpa_lsp.execution.launches import DESCRIPTION_SUFFIX
from gpa_lsp.execution.launches.launch import Argument, ArrayArgument, LaunchDescription
from gpa_lsp.execution.launches.read_arguments import OF_ARRAYS, ArgumentReader, ArrayReader
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.number_expressions import Names, Number
from gpa_lsp.foundation.toml_tables import Table, read_toml

# Keys of a launch's table
LAUNCH_KEYS = frozenset({
    "kernel", "title", "block", "grid", "threads", "fold", "shared_bytes", "cluster", "constants", "arguments", "variables",
    "memory", "guesses",
})  # fmt: skip

_AXES = ("x", "y", "z")

Dim3 = tuple[int, int, int]


def find_launch_file(source: Path) -> Path | None:
    """Description beside a source: ``kernel.cu`` → ``kernel.launch.toml``; None if there is none."""
    path = source.with_name(source.stem + DESCRIPTION_SUFFIX)
    return path if path.is_file() else None


def word_undescribed(names: Collection[str] = (), remedy: str = "") -> str:
    """Sentence about kernels whose launch is not described.

    >>> word_undescribed(["f", "g"], "gpa-lsp predict trace --template k.cu"), word_undescribed()
    ('No launch description of f, g. Create one: gpa-lsp predict trace --template k.cu', 'No launch description')

    Args:
        names: readable names of those kernels; empty where no launch of any is described.
        remedy: how a description is created; empty where there is no room for it.
    """
    of = f" of {', '.join(names)}" if names else ""
    return f"No launch description{of}{f'. Create one: {remedy}' if remedy else ''}"


def explain_undescribed(
    source: Path, names: Collection[str] = (), described: Path | None = None, *, folder: Path | None = None
) -> InputError:
    """Error about kernels whose launch is not described, with the command that describes them.

    Args:
        source: or what was built; its kernels cannot be run.
        names: readable names of those kernels; empty where no launch of any is described.
        described: the description that there is; None for the file beside the source, which is to be created.
        folder: where the command is typed; None for the current one.
    """
    return InputError(word_undescribed(names, write_command(source, described, folder=folder)), path=source)


def write_command(source: Path, described: Path | None = None, *, folder: Path | None = None) -> str:
    """Command that describes launches of a source or a build; arguments as for :func:`explain_undescribed`."""
    target = described or source.with_name(source.stem + DESCRIPTION_SUFFIX)
    command, written = (shlex.quote(_shorten_path(one, folder or Path.cwd())) for one in (source, target))
    return f"gpa-lsp predict trace --template {command} {'>>' if _exists(target) else '>'} {written}"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # its name is too long
        return False


def _shorten_path(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder) if path.is_absolute() and path.is_relative_to(folder) else path)


def read_launches(
    path: Path, *, text: str | None = None, block: Dim3 | None = None, fold: Dim3 | None = None
) -> tuple[LaunchDescription, ...]:
    """Read a description.

    Args:
        path: of the file.
        text: what it holds, where an editor has it unsaved; None reads the file.
        block: takes the place of each launch's block, for exploring: grids that were given by ``threads``, and expressions, follow; a grid of
            numbers keeps the threads that it has with the launch's own block.
        fold: elements each thread covers, in place of each launch's own.

    Raises:
        InputError: it cannot be read, is not TOML, or describes no launch. Says the line.
    """
    root = read_toml(path, text=text)
    root.check_keys({"launch", "constants"}, "a description")
    launches = root.read_tables("launch", "launches")
    if not launches:
        raise root.refuse("it describes no launch", remedy='start one with [[launch]] and kernel = "…"')
    return tuple(_LaunchReader(root=root, table=table, path=path, block=block, fold=fold).read() for table in launches)


class _LaunchReader:
    """Reads one launch."""

    def __init__(self, *, root: Table, table: Table, path: Path, block: Dim3 | None, fold: Dim3 | None) -> None:
        self._root = root
        self._table = table
        self._path = path
        self._names = Names()
        self._block = block
        self._fold = fold
        self._sizes: dict[str, Dim3] = {}
        for constants in (root.read_table("constants"), table.read_table("constants")):
            self._add_constants(constants)

    def read(self) -> LaunchDescription:
        table = self._table
        table.check_keys(LAUNCH_KEYS, "a launch")
        tables = table.read_tables("arguments", "arguments")
        for argument in tables:
            self._add_scalar(argument)
        for size in ("block", "grid", "threads"):
            for axis, letter in enumerate(_AXES):
                self._names.add(f"{size}_{letter}", partial(self._read_axis, size, axis))
        kernel = table.read_text("kernel")
        block, grid = self._read_size("block"), self._read_size("grid")
        arrays = ArrayReader(names=self._names, folder=self._path.parent)
        reader = ArgumentReader(names=self._names, arrays=arrays)
        arguments = tuple(reader.read(argument, number) for number, argument in enumerate(tables))
        _check_names(tables, arguments)
        memory = tuple(
            reader.read_memory(one, number) for number, one in enumerate(table.read_tables("memory", "arrays"))
        )
        return LaunchDescription(
            kernel=kernel,
            block=block,
            grid=grid,
            threads=self._read_size("threads") if "threads" in table.content else None,
            fold=self._read_fold() if "threads" in table.content else (1, 1, 1),
            shared_bytes=table.read_integer("shared_bytes", self._names.find, 0),
            cluster=table.read_dimensions("cluster", self._names.find) if "cluster" in table.content else None,
            arguments=arguments,
            variables=self._read_variables(arrays.arrays.keys()),
            memory=memory,
            guesses=self._read_guesses(),
            title=table.read_text("title") if table.content.get("title") else "",
            path=self._path,
            line=table.line,
        )

    def _add_constants(self, table: Table) -> None:
        for name in table.content:
            self._names.add(name, partial(table.read_number, name, self._names.find))

    def _add_scalar(self, table: Table) -> None:
        """Name a numeric argument for expressions; in its own expression, a constant of the same name is meant."""
        name, value = table.content.get("name"), table.content.get("value")
        is_number = not (OF_ARRAYS | {"width", "members"}) & table.content.keys()
        if not isinstance(name, str) or not is_number or isinstance(value, list) or value is None:
            return
        if isinstance(value, str) and name in self._names.sources:
            return
        self._names.add(name, lambda: table.evaluate(value, self._names.find, "value"))

    def _read_guesses(self) -> tuple[str, ...]:
        listed = self._table.content.get("guesses", [])
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise self._table.refuse("guesses is no list of names", remedy='write guesses = ["n"]', key="guesses")
        return tuple(listed)

    def _read_axis(self, key: str, axis: int) -> Number:
        return self._read_size(key)[axis]

    def _read_size(self, key: str) -> Dim3:
        known = self._sizes.get(key)
        if known is None:
            known = self._sizes[key] = self._find_dimensions(key)
        return known

    def _find_dimensions(self, key: str) -> Dim3:
        content = self._table.content
        if key == "block" and self._block is not None:
            return self._block
        if key == "grid" and ("grid" in content) == ("threads" in content):
            raise self._table.refuse(
                "grid and threads are both given" if "grid" in content else "neither grid nor threads is given",
                remedy="give the grid in blocks, or the threads it must cover",
                key=key if key in content else None,
            )
        if key == "grid" and ("threads" in content or (self._block is not None and not self._follows_block())):
            return self._divide()
        if key == "fold" and self._fold is not None:
            return self._fold
        return self._table.read_dimensions(key, self._names.find)

    def _divide(self) -> Dim3:
        """Threads by block and fold, rounded up."""
        threads = self._read_size("threads") if "threads" in self._table.content else self._count_threads()
        sizes = zip(threads, self._read_size("block"), self._read_fold(), strict=True)
        x, y, z = (-(-threads // (block * folded)) for threads, block, folded in sizes)
        return x, y, z

    def _read_fold(self) -> Dim3:
        return self._read_size("fold") if "fold" in self._table.content or self._fold else (1, 1, 1)

    def _follows_block(self) -> bool:
        return "block_" in str(self._table.content["grid"])

    def _count_threads(self) -> Dim3:
        """Threads of a grid of numbers with the launch's own block."""
        own = _LaunchReader(root=self._root, table=self._table, path=self._path, block=None, fold=None).read()
        x, y, z = (size * blocks for size, blocks in zip(own.block, own.grid, strict=True))
        return x, y, z

    def _read_variables(self, taken: Collection[str]) -> tuple[ArrayArgument, ...]:
        reader = ArrayReader(names=self._names, folder=self._path.parent)
        found = []
        for table in self._table.read_tables("variables", "variables"):
            name = table.read_text("name")
            if name in taken:
                raise table.refuse(f"an argument is named {name!r}, too", remedy="rename the argument", key="name")
            try:
                found.append(reader.read(table, name))
            except InputError as error:
                raise table.locate(error, "name") from None
        return tuple(found)


def _check_names(tables: tuple[Table, ...], arguments: tuple[Argument, ...]) -> None:
    met: set[str] = set()
    for table, argument in zip(tables, arguments, strict=True):
        if argument.name in met:
            raise table.refuse(f"two arguments are named {argument.name!r}", remedy="rename one of them", key="name")
        met.add(argument.name)
