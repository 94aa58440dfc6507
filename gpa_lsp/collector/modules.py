"""The cubins that a run loaded, and those of them that its profile needs."""

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpa_lsp.basis.errors import GpaError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.binary.cubin import read_cubin

_MOST_EMBEDDED_BYTES = 48 << 20
"""Of cubins in the profile itself, which may have 128 MiB; more of them lie beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModule:
    """A cubin of the run.

    Attributes:
        number: in the profile.
        image: its bytes.
        sizes: bytes of each of its functions, by mangled name.
        capability: compute capability it is for; None when it cannot be read.
    """

    number: int
    image: bytes
    sizes: dict[str, int]
    capability: tuple[int, int] | None


class LoadedModules:
    """Reads cubins when they are first asked for.

    Args:
        folder: with a file for each, named by its hash.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[int, LoadedModule | None] = {}

    def find(self, digest: int) -> LoadedModule | None:
        """The module with a hash; None where its file is missing."""
        if digest not in self._found:
            number = sum(one is not None for one in self._found.values())
            image = self._read(digest)
            self._found[digest] = None if image is None else _make(number, image)
        return self._found[digest]

    def find_by_name(self, name: str, digests: Iterable[int]) -> LoadedModule | None:
        """The only module of some that has a function; None where several have, as when a kernel was compiled again under its name."""
        mark = b"\0" + name.encode() + b"\0"
        holders = [digest for digest in digests if (image := self._read(digest)) is not None and mark in image]
        return self.find(holders[0]) if len(holders) == 1 else None

    def _read(self, digest: int) -> bytes | None:
        try:
            return (self._folder / f"{digest:016x}.cubin").read_bytes()
        except OSError:
            return None

    def write(self, output: Path) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
        """The modules as a profile has them, and files that go beside it.

        Args:
            output: where the profile will be.
        """
        held = [module for module in self._found.values() if module is not None]
        written, apart, total_bytes = [], {}, 0
        for module in held:
            total_bytes += len(module.image)
            if total_bytes <= _MOST_EMBEDDED_BYTES:
                cubin = {"base64": base64.b64encode(module.image).decode("ascii")}
            else:
                name = f"{output.name}.cubins/{module.number}.cubin"
                apart[name] = module.image
                cubin = {"path": name}
            row: dict[str, Any] = {"id": module.number, "cubin": cubin}
            if module.capability is not None:
                row["compute_capability"] = "{}.{}".format(*module.capability)
            if module.sizes:
                row["functions"] = [{"name": name, "size_bytes": size} for name, size in module.sizes.items()]
            written.append(row)
        return written, apart


def _make(number: int, image: bytes) -> LoadedModule:
    try:
        cubin = read_cubin(image)
    except GpaError:
        return LoadedModule(number=number, image=image, sizes={}, capability=None)
    sizes = {name: one.size_bytes for name, one in cubin.functions.items()}
    return LoadedModule(number=number, image=image, sizes=sizes, capability=divmod(cubin.sm, 10))
