"""Packs the server and its pure Python libraries into ``bundled/server.zip``.

That is the package itself and the libraries that only speak the protocol; beside it, two lists of what the user's interpreter must have: modules to
look for, and packages to install, with versions and hashes. To be run by a Python in which the server is installed: its libraries are packed.

One archive and not files: six hundred of them make an extension a third larger. It is not compressed, because the extension's own archive is.
"""

import sys

REMEDY = (
    "Install the server into a Python (3.11 or later) and name that one, in editors/vscode: "
    "python3 -m venv .venv && .venv/bin/pip install ../.. && PYTHON=.venv/bin/python npm run package"
)

if sys.version_info < (3, 11):  # noqa: UP036 - any Python may be asked to run it, and the next lines need this one
    sys.exit(f"{sys.executable} is Python {sys.version.split()[0]}, too old to pack the server. {REMEDY}")

import json  # noqa: E402
import re  # noqa: E402
import tomllib  # noqa: E402
from importlib.metadata import PackageNotFoundError, distribution  # noqa: E402
from pathlib import Path  # noqa: E402
from zipfile import ZIP_STORED, ZipFile, ZipInfo  # noqa: E402

BUNDLED = Path(__file__).resolve().parent.parent / "bundled"
REPOSITORY = BUNDLED.parent.parent.parent

# Every package of the project's, with its version, its hashes and a comment that says which packages need it.
PINNED = REPOSITORY / ".github" / "requirements-dev.txt"
ENTRY = re.compile(r"^(?P<name>[\w.-]+)==\S+.*\n(?:    .*\n?)+", re.MULTILINE)

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
    "execution/calibration/",
    "report/gate/",
    "execution/instrumentation/",
    "notebook/",
    "execution/prediction/gpu_trace.py",
    "execution/record/",
    "document/gate_",
)
"""Parts of the package that a server has no use for."""

SERVED = (
    *(
        f"cli/{name}.py"
        for name in (
            "__init__",
            "inputs",
            "main",
            "options",
            "outputs",
            "predictions",
            "terminal",
        )
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


def normalise(name: str) -> str:
    """Name of a package in the one spelling that all of its spellings share."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pin(names: list[str]) -> str:
    """Requirements of pip: these packages and what they need, with versions and hashes.

    Raises:
        ValueError: one of them is not pinned.
    """
    entries = [(normalise(entry["name"]), entry[0]) for entry in ENTRY.finditer(PINNED.read_text(encoding="utf-8"))]
    wanted = {normalise(name) for name in names}
    missing = wanted - {name for name, _ in entries}
    if missing:
        raise ValueError(f"{PINNED} does not pin {', '.join(sorted(missing))}: refresh it as CONTRIBUTING.md says")
    count = 0
    while len(wanted) > count:
        count = len(wanted)
        wanted |= {name for name, entry in entries if wanted & find_dependants(entry)}
    text = "".join(entry.rstrip() + "\n" for name, entry in entries if name in wanted)
    return re.sub(r"^    #.*\n", "", text, flags=re.MULTILINE)


def find_dependants(entry: str) -> set[str]:
    """Packages that need the one of an entry, as its comment says."""
    return {normalise(name) for name in re.findall(r"^    #(?: via|  ) +([\w.-]+)$", entry, re.MULTILINE)}


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


def pack() -> None:
    """Make the archive and the lists.

    Raises:
        PackageNotFoundError: a library is not installed.
        ValueError: it cannot be packed, or a package is not pinned.
    """
    files = find_server_files()
    for name in PURE:
        files |= find_library_files(name)
    with ZipFile(BUNDLED / "server.zip", "w", ZIP_STORED) as archive:
        for name, path in sorted(files.items()):
            archive.writestr(ZipInfo(name), path.read_bytes())  # without times: the same files make the same archive
    names = [find_name(text) for text in read_requirements()]
    modules = {
        name: MODULES.get(name, name.replace("-", "_")) for name in names if name not in (*PROGRAMS, *FOR_SOME_FILES)
    }
    (BUNDLED / "requirements.txt").write_text(pin(names), encoding="utf-8")
    (BUNDLED / "native.json").write_text(json.dumps(modules, indent=2) + "\n", encoding="utf-8")


def main() -> int:
    """Pack, or say in a sentence why that cannot be done."""
    try:
        pack()
    except PackageNotFoundError as error:
        sys.stderr.write(
            f"{error.name} is not installed in {sys.executable}, and is packed with the server. {REMEDY}\n"
        )
        return 1
    except (ValueError, OSError) as error:
        sys.stderr.write(f"The server cannot be packed: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
