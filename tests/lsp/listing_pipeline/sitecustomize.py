"""Puts another ``gpa_lsp.report.pipeline`` in the place of the real one in processes that have this folder on their PYTHONPATH.

Its profiles are listings in the notation of ``tests/report_builder.py``, so that tests of the server need no cubin and can be slow, broken or
half-written on purpose. Lines that start with ``#`` say how:

    #name saxpy(float*)        the kernel's readable name; without it the file's name
    #time 120000               the duration of its launch, in nanoseconds
    #measured 1700000000       when, in seconds since 1970
    #source saxpy.cu           embed this file of the profile's folder as it is now
    #written                   the notation of ``tests/rows/written.py`` instead: with control codes, blame and advice
    #sleep 5                   take so many seconds
    #crash                     die without a word
    #bug                       raise an exception no reader raises
    #spawn 30                  start a tool that runs so many seconds, and wait for it
    #end                       the last line: without it the profile is truncated
"""

import os
import subprocess
import sys
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def analyse(paths: Sequence[Path], *, progress: Any = None, **more: Any) -> Any:
    from gpa_lsp.foundation.errors import InputError, Problem
    from gpa_lsp.report.model import Report
    from tests.report_builder import build_kernel

    (path,) = paths
    lines = path.read_text().splitlines()
    words = {line[1:].split()[0]: line.partition(" ")[2] for line in lines if line.startswith("#")}
    if "end" not in words:
        error = InputError("the file ends too early", path=path, remedy="record it again")
        return Report(problems=(Problem.from_error(error),), kernels=())
    if progress is not None:
        progress("reading", 1, 2)
    time.sleep(float(words.get("sleep", 0)))
    if "crash" in words:
        os._exit(9)
    if "bug" in words:
        raise ZeroDivisionError("on purpose")
    if "spawn" in words:
        subprocess.run(["sleep", words["spawn"]], check=False)
    name = words.get("name", path.name)
    if "written" in words:
        return _analyse_written(path, [line for line in lines if not line.startswith("#")], name)
    kernel = build_kernel(
        "\n".join(line for line in lines if not line.startswith("#")),
        name=name,
        profile_path=str(path),
        **({"durations_ns": (float(words["time"]),)} if "time" in words else {}),
        measured_unix_s=int(words["measured"]) if "measured" in words else None,
        sources={words["source"]: (path.parent / words["source"]).read_text()} if "source" in words else {},
    )
    return Report(problems=(), kernels=(kernel,))


def _analyse_written(path: Path, lines: Sequence[str], name: str) -> Any:
    from msgspec.structs import replace

    from gpa_lsp.diagnosis.advice.advise import advise_kernel
    from gpa_lsp.diagnosis.analyses.subject import Subject
    from gpa_lsp.diagnosis.blame.blame import blame_kernel
    from gpa_lsp.report.gather import AnalysedKernel, gather_report
    from tests.rows.written import write_kernel

    kernel = replace(write_kernel("\n".join(lines), name=name), profile_path=path)
    blame = blame_kernel(kernel)
    advice, _ = advise_kernel(Subject(kernel, blame, read_source=lambda file: None))
    return gather_report([AnalysedKernel(kernel=kernel, blame=blame, advice=advice)])


module = types.ModuleType("gpa_lsp.report.pipeline")
module.analyse = analyse  # type: ignore[attr-defined]
sys.modules["gpa_lsp.report.pipeline"] = module
