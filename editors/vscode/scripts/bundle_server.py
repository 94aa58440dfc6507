"""Packs the server and its pure Python libraries into ``bundled/server.zip``.

That is the package itself and the libraries that only speak the protocol; beside it, two lists of what the user's interpreter must have. To be run by
a Python in which the server is installed: its libraries are the ones that are packed.

One archive and not files: six hundred of them make an extension a third larger. It is not compressed, because the extension's own archive is.
"""

import json
import re
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

BUNDLED = Path(__file__).resolve().parent.parent / "bundled"
REPOSITORY = BUNDLED.parent.parent.parent

PURE = ("pygls", "lsprotocol", "cattrs", "attrs", "typing_extensions")
"""Only needed to speak the protocol, and of pure Python: these come along."""

COMMAND_LINE_ONLY = ("rich", "networkx")

PROGRAMS = ("nvidia-cuda-nvdisasm", "nvidia-cuda-cuobjdump")
"""No modules: what needs SASS text says so when they are missing."""

# The server starts without them: pages and compressed reports name the one that is missing.
FOR_SOME_FILES = ("jinja2", "backports.zstd")

MODULES = {"protobuf": "google.protobuf", "pyelftools": "elftools"}
"""Where the name to import is not the name of the package."""

NOT_SERVED = (
    "agents/",
    "api/",
    "cli/",
    "device/calibration/",
    "gate/",
    "instrumentation/",
    "notebook/",
    "prediction/gpu_trace.py",
    "record/",
    "render/gate_",
)
"""Parts of the package that a server has no use for."""

SERVED = (
    *(
        f"cli/{name}.py"
        for name in ("__init__", "inputs", "main", "predictions", "program_end", "progress", "static_check", "terminal")
    ),
    *(f"cli/commands/{name}.py" for name in ("__init__", "emulate")),
)
"""Of those, what it starts: ``gpa-lsp emulate``, which records launches."""

OTHER_FORMATS = "cattrs/preconf"
"""YAML, BSON and what else."""

LICENCE = re.compile(r"(licen[cs]e|notice|copying)", re.IGNORECASE)


def read_requirements() -> list[str]:
    """What the interpreter must have, as the server's own package asks for it."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements: list[str] = project["dependencies"]
    return [text for text in requirements if find_name(text) not in (*PURE, *COMMAND_LINE_ONLY)]


def find_name(requirement: str) -> str:
    """Name of the package in a requirement.

    >>> find_name("pygls>=2.1,<3")
    'pygls'
    """
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def find_library_files(name: str) -> dict[str, Path]:
    """Modules of an installed package, and its licence, by their place in the archive.

    Raises:
        ValueError: it is compiled, or installed in a way that does not say its files.
    """
    package = distribution(name)
    files = [
        file for file in package.files or () if file.parts[0] not in ("..", "bin") and "__pycache__" not in file.parts
    ]
    if not any(file.suffix == ".py" for file in files) or any(file.suffix in (".so", ".pyd", ".dll") for file in files):
        raise ValueError(f"{name} is no package of Python files alone")
    wanted = [
        file
        for file in files
        if file.suffix in (".py", ".typed") or file.name == "METADATA" or LICENCE.search(file.name)
    ]
    return {
        f"libs/{file.as_posix()}": Path(str(package.locate_file(file)))
        for file in wanted
        if not file.as_posix().startswith(OTHER_FORMATS)
    }


def find_server_files() -> dict[str, Path]:
    """The package, by place in the archive."""
    package = REPOSITORY / "gpa_lsp"
    files = {
        path.relative_to(package).as_posix(): path
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".md" and "__pycache__" not in path.parts
    }
    return {
        f"server/gpa_lsp/{name}": path
        for name, path in files.items()
        if name in SERVED or not name.startswith(NOT_SERVED)
    }


def main() -> int:
    """Make the archive and the lists."""
    files = find_server_files()
    for name in PURE:
        files |= find_library_files(name)
    with ZipFile(BUNDLED / "server.zip", "w", ZIP_STORED) as archive:
        for name, path in sorted(files.items()):
            archive.writestr(ZipInfo(name), path.read_bytes())  # without times: the same files make the same archive
    requirements = read_requirements()
    names = [find_name(text) for text in requirements]
    modules = {
        name: MODULES.get(name, name.replace("-", "_")) for name in names if name not in (*PROGRAMS, *FOR_SOME_FILES)
    }
    (BUNDLED / "requirements.txt").write_text("\n".join(requirements) + "\n", encoding="utf-8")
    (BUNDLED / "native.json").write_text(json.dumps(modules, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
