"""Run commands in a hostile folder as the program ``gpa-lsp`` runs them, or its server, and say which processes they started.

``run_in_folder.py LOG VARIABLES COMMANDS``; without commands it serves. To the variables empty entries are added, which stand for the folder one
is in. As with the installed program, it is its own folder that Python looks in for modules, which is why the tests copy it to an empty one.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def main(log: Path, variables: Sequence[str], commands: Sequence[Sequence[str]]) -> int:
    """Run them, and note their exit codes."""
    from gpa_lsp.cli.main import join_words
    from gpa_lsp.cli.main import main as run_command

    here = os.pathsep.join(["", ".", ""])
    for name in variables:  # for children: what Python read as it started is past
        os.environ[name] = here + os.environ.get(name, "")
    stream = log.open("a", buffering=1, encoding="utf-8")

    def note(kind: str, words: Sequence[Any]) -> None:
        stream.write(json.dumps([kind, *map(os.fsdecode, words)]) + "\n")

    def listen(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            note("started", [arguments[1]] if isinstance(arguments[1], str) else arguments[1])

    sys.addaudithook(listen)
    if not commands:
        return run_command(["serve"])
    _explore_in_processes()
    for words in commands:
        note("ran", [join_words(words)[0], str(run_command(words))])
    _run_a_tool()
    asyncio.run(_measure(variables))
    return 0


def _explore_in_processes() -> None:
    """Explore in worker processes at once, even on a quick machine."""
    from gpa_lsp.execution.prediction.exploration.explore import LocalWorkers

    LocalWorkers.__init__.__kwdefaults__["here_s"] = 0.0


def _run_a_tool() -> None:
    from gpa_lsp.foundation.processes.watched_command import RunLimits, TimeLimits, run_command

    limits = RunLimits(time=TimeLimits.for_work(60.0), memory_limit_bytes=1 << 30)
    assert run_command("true", ["/bin/true"], folder=Path.cwd(), environment=dict(os.environ), limits=limits)[0]


async def _measure(variables: Sequence[str]) -> None:
    """The person's own command gets the environment as it is."""
    from gpa_lsp.profile.collect.command_run import CommandRun

    command = ["/bin/sh", "-c", "".join(f'echo "${name}";' for name in variables)]
    lines: list[str] = []
    run = CommandRun(command, folder=Path.cwd(), timeout_s=60.0, take_lines=lines.extend)
    await run.wait()
    assert lines == [os.environ[name] for name in variables], lines


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])))
