"""One way to write files, to read kept objects, and to start programs: whatever else does so stands in a list here, with the reason."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.conftest import ROOT

PACKAGE = ROOT / "gpa_lsp"

# file or folder of the package → why it writes by other means than ``foundation.files.atomic_write``
WRITING = {
    "foundation/files.py": "is that way",
    "code/binary/containers.py": "a temporary folder of the process",
    "code/binary/disassembler.py": "a temporary folder of the process",
    "cli/commands/gate.py": "appends to the summary of a GitHub job, which other steps append to",
    "cli/terminal.py": "stands in for a closed standard stream",
    "profile/collect/allowance.py": "gives a damaged file another name",
    "execution/prediction/launch_timing.py": "a temporary folder of the process",
    "profile/collector/run.py": "a temporary folder of the process",
    "profile/collect/measured_reports.py": "moves a whole report to where it is kept",
    "execution/compiler/compile.py": "a temporary folder of the process",
    "execution/compiler/ptx_files.py": "a temporary folder of the process",
    "report/fixes/trials.py": "a temporary folder of the process",
    "report/history/database.py": "SQLite's own transactions, an empty file for it and a lock beside it; gives a damaged file another name",
    "foundation/native/c_compiler.py": "a temporary folder of the process, and a lock",
    "notebook/measure.py": "a temporary folder of the process",
    "notebook/unmeasured.py": "a temporary folder of the process",
    "execution/prediction/exploration/explore.py": "appends to a journal, and takes back what found no room",
    "execution/prediction/exploration/simulating.py": "a temporary folder of the process",
    "execution/prediction/trace_files.py": "files of Parquet that get their names when all are whole",
    "execution/programs/examine.py": "a temporary folder that gets its name when it is whole",
    "execution/programs/build.py": "links and linker scripts in a temporary folder of the build",
    "execution/programs/library.py": "a temporary folder of the process",
    "execution/programs/loaded_code.py": "a temporary folder of the process",
    "execution/programs/session.py": "a file in memory",
    "execution/record/held_kernels.py": "the user's program, which imports nothing of ours; a temporary folder",
    "execution/record/run.py": "a temporary folder of the process",
    "execution/record/python_programs.py": "a temporary folder of the process",
    "agents/server.py": "pipes of the process",
    "foundation/processes": "pipes of children",
}

# file → why it reads or makes pickles
PICKLING = {
    "foundation/packed_records.py": "makes nothing but records; keeps a cache and messages",
    "report/pipeline/judge.py": "from the process to its own children, through their pipes",
    "foundation/processes/python_children.py": "pipes between a process and its children",
    "foundation/processes/supervision.py": "pipes between a process and its children",
    "foundation/processes/worker.py": "pipes between a process and its children",
}

# file → why it starts a process by other means than ``processes``
STARTING = {
    "cli/commands/profile.py": "Nsight Compute's help, with a limit",
    "cli/installation.py": "versions of tools, with a limit; the driver in an isolated child",
    "profile/collect/command_run.py": "the user's own command in their terminal, which Ctrl-C reaches",
    "foundation/processes": "is that way",
}

# file → why it takes a frame of an inline chain, or asks whose a file is, by other means than ``basis.ownership``
CHOOSING = {
    "diagnosis/advice/optimizers/function_split.py": "whether code was inlined at all: the outermost frame is the kernel's own",
    "diagnosis/analyses/line_sums.py": "sums by the kernel's own lines, which a question asks for",
    "foundation/ownership.py": "is that way",
    "code/binary/embedded_ptx.py": "lines of PTX, which have one frame",
    "report/callers.py": "the kernel's own body: outermost frames",
    "editor/sass/columns.py": "the file that a kernel is in: outermost frames",
    "editor/sass/document.py": "quotes the whole chain, from the inside out",
    "execution/hybrid/operations.py": "a line of the kernel's own source, which is said without its file",
    "execution/programs/loaded_code.py": "the file that a kernel is in: outermost frames",
    "document/html_report/kernel_section.py": "frames of a flame graph",
    "execution/programs/call_paths.py": "frames of the host's call path",
    "document/check_view.py": "where in a chain the place of a finding stands",
    "document/sass_listing.py": "shows the whole chain, from the inside out",
    "report/kernel_lines.py": "the kernel's own body: outermost frames",
    "report/source_paths.py": "does not guess which file a library's is",
    "report/taken.py": "lines of a kernel's own body, whose edits it looks for",
    "report/saved/instruction_rows.py": "the line table's columns as they are",
    "kernel/scopes.py": "the file and first line of a routine: outermost frames",
    "execution/traces/code_centric.py": "whether a chain has lines at all",
}

OPENING = {"open", "fdopen", "NamedTemporaryFile", "mkstemp", "SpooledTemporaryFile"}
WRITERS = {
    *("write_text", "write_bytes", "copyfile", "copy", "copy2", "copytree", "copyfileobj", "move", "rename", "replace"),
    *("link", "symlink", "symlink_to", "hardlink_to", "touch", "tofile", "ParquetWriter", "memfd_create", "truncate"),
}
STARTERS = {"Popen", "run", "call", "check_call", "check_output", "system", "popen", "fork", "forkpty", "posix_spawn"}
SHELLING = {"create_subprocess_exec", "create_subprocess_shell", "startfile"}
PICKLERS = {"pickle", "shelve", "marshal", "dill", "joblib", "cloudpickle"}
KNOWN = OPENING | WRITERS | STARTERS | SHELLING | {"load"}


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def list_calls(path: Path) -> Iterator[tuple[ast.Call, str, str]]:
    """Calls of what may be looked for, with its name and what stands before it."""
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if (name := node.func.attr) in KNOWN or name.startswith(("exec", "spawn")):
                yield node, name, ast.unparse(node.func.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node, node.func.id, ""


def list_imported(path: Path) -> set[str]:
    """Names of modules a file imports, and of what it takes from them."""
    found = set()
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
    return found


def opens_to_write(call: ast.Call, name: str, before: str, path: Path) -> bool:
    """Whether a call opens something that it may write to, as far as its arguments say; what they leave open counts."""
    if name in ("NamedTemporaryFile", "mkstemp"):
        return True
    if before == "os" and name == "open":
        named = {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}
        values = [node for node in ast.walk(parse(path)) if isinstance(node, ast.Assign)]
        assigned = {ast.unparse(node.targets[0]): ast.unparse(node.value) for node in values}
        flags = ast.unparse(call) + "".join(text for name, text in assigned.items() if name in named)
        return any(flag in flags for flag in ("O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"))
    place = 1 if name == "fdopen" or before in ("", "io", "gzip", "lzma", "bz2", "zipfile", "tarfile", "codecs") else 0
    given = [one.value for one in call.keywords if one.arg == "mode"] or call.args[place : place + 1]
    modes = [node.value for one in given for node in ast.walk(one) if isinstance(node, ast.Constant)]
    return any(isinstance(mode, str) and len(mode) <= 4 and set(mode) & set("wax+") for mode in modes)


def changes_files(call: ast.Call, name: str, before: str) -> bool:
    """Whether a method that writes is one of a path: not of a string, a record, a stream or the memory of a GPU."""
    last = before.rpartition(".")[2]
    if name == "replace":  # str.replace has two arguments, dataclasses.replace has keywords
        return (len(call.args) == 1 and not call.keywords) or before == "os"
    if name in ("write_text", "write_bytes"):
        return last not in ("terminal", "arena") and before != ""
    if name == "copy":
        return before == "shutil"
    if name == "rename":
        return last not in ("found", "kept")  # reports
    return name not in ("call", "link", "move", "truncate") or before in ("os", "shutil") or "stream" in last


def writes(path: Path) -> list[int]:
    found = []
    for call, name, before in list_calls(path):
        is_opening = name in OPENING and opens_to_write(call, name, before, path)
        if is_opening or (name in WRITERS and before and changes_files(call, name, before)):
            found.append(call.lineno)
    return found


def pickles(path: Path) -> list[int]:
    imported = {name.partition(".")[0] for name in list_imported(path)}
    loads = [
        call.lineno for call, name, _ in list_calls(path) if name == "load" and "allow_pickle" in ast.unparse(call)
    ]
    return [1, *loads] if imported & PICKLERS else loads


def starts(path: Path) -> list[int]:
    found = []
    for call, name, before in list_calls(path):
        is_module = before in ("subprocess", "os", "asyncio", "pty", "multiprocessing")
        if name in SHELLING or (is_module and (name in STARTERS or name.startswith(("exec", "spawn")))):
            found.append(call.lineno)
    direct = {f"subprocess.{name}" for name in STARTERS} | {"os.system", "os.popen", "os.fork", "multiprocessing"}
    return [*found, *([1] if list_imported(path) & direct else [])]


def is_frames(node: ast.expr) -> bool:
    """Whether an expression is an inline chain, as far as its name says."""
    text = ast.unparse(node)
    for wrapper in ("reversed(", "enumerate(", "tuple(", "list("):
        text = text.removeprefix(wrapper)
    return (
        re.fullmatch(r"(?:.*[._])?(?:chain|frames|inlines?)(?: or \(\))?\)*|.*\bchains\[[^:]*\]\)*", text) is not None
    )


def chooses(path: Path) -> list[int]:
    found = [1] if "gpa_lsp.foundation.ownership.is_library_file" in list_imported(path) else []
    if not re.search(r"\bFrame\b|InlineChain|\.chains?\b", path.read_text(encoding="utf-8")):
        return found
    for node in ast.walk(parse(path)):
        is_end = isinstance(node, ast.Subscript) and ast.unparse(node.slice) in ("0", "-1") and is_frames(node.value)
        is_first = (
            isinstance(node, ast.Call) and ast.unparse(node.func) == "next" and isinstance(node.args[0], ast.GeneratorExp)
            and is_frames(node.args[0].generators[0].iter)
        )  # fmt: skip
        if is_end or is_first:
            found.append(node.lineno)  # type: ignore[attr-defined]
    return found


# what looks → the words without one of which a file has nothing for it
WORDS = {
    writes: rf"\b(?:{'|'.join(OPENING | WRITERS)})\b",
    pickles: "|".join(PICKLERS),
    starts: rf"subprocess|multiprocessing|startfile|\b(?:os|asyncio|pty)\b.*\b(?:{'|'.join(STARTERS | SHELLING)}|exec|spawn)",
    chooses: r"is_library_file|\bFrame\b|InlineChain|\.chains?\b",
}


def list_others(find: Callable[[Path], list[int]], known: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Places that are in no list, and entries of a list that have no place any more."""
    others, used = [], set()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        entry = next((one for one in known if name == one or name.startswith(f"{one}/")), None)
        lines = find(path) if re.search(WORDS[find], path.read_text(encoding="utf-8")) else []
        if lines and entry is None:
            others += [f"gpa_lsp/{name}:{line}" for line in lines]
        elif lines and entry is not None:
            used.add(entry)
    return others, sorted(set(known) - used)


def test_files_are_written_whole_or_not_at_all() -> None:
    """Writing goes through ``atomic_write``: a full disk, or an end in the middle, costs nothing that was there and leaves nothing behind."""
    assert list_others(writes, WRITING) == ([], [])


def test_kept_objects_are_records() -> None:
    """Objects are kept by ``packed_records`` or as JSON: what lies in a file is data and runs nothing when it is read."""
    assert list_others(pickles, PICKLING) == ([], [])


def test_programs_are_started_by_one_room() -> None:
    """Programs are started by ``processes``: isolated from the current folder, with a limit, and ended with their parent."""
    assert list_others(starts, STARTING) == ([], [])


def test_places_are_named_by_one_room() -> None:
    """Places are named by ``basis.ownership``: the user's line, with the library's that is inlined there behind it."""
    assert list_others(chooses, CHOOSING) == ([], [])


def test_the_search_finds_each_way(tmp_path: Path) -> None:
    cases = {
        writes: (
            "open(p, 'w')", "p.open('a')", "p.open(mode='xb')", "open(p, 'r+b')", "p.write_text(t)", "p.write_bytes(t)", "shutil.copy(a, b)",
            "shutil.move(a, b)", "os.replace(a, b)", "p.replace(q)", "p.rename(q)", "os.fdopen(h, 'wb')", "os.open(p, os.O_WRONLY)",
            "gzip.open(p, 'wt')", "tempfile.NamedTemporaryFile()", "data.tofile(p)", "p.open('rb' if size else 'xb')",
        ),
        pickles: ("import pickle", "from pickle import loads", "import shelve", "np.load(p, allow_pickle=True)"),
        starts: (
            "subprocess.run(c)", "subprocess.Popen(c)", "os.system(c)", "os.execvp(a, b)", "asyncio.create_subprocess_exec(c)",
            "from subprocess import Popen", "os.posix_spawn(a, b, c)", "os.spawnv(m, a, b)", "import multiprocessing",
        ),
        chooses: (
            "one.chain[0].line", "columns.chains[number][-1]", "next(frame for frame in reversed(row.chain or ()) if frame.line)",
            "from gpa_lsp.foundation.ownership import is_library_file",
        ),
    }  # fmt: skip
    plain = [
        "p.open('rb')",
        "open(p)",
        "text.replace('a', 'b')",
        "replace(one, a=1)",
        "np.load(p)",
        "import json",
        "worker.run(job)",
    ]
    for number, (find, text) in enumerate((find, text) for find, texts in cases.items() for text in texts):
        path = tmp_path / f"{number}.py"
        path.write_text(text)
        assert find(path) and re.search(WORDS[find], text), text
    for number, text in enumerate(plain):
        path = tmp_path / f"plain{number}.py"
        path.write_text(text)
        assert not any(find(path) for find in cases), text
