"""The options about sources that are compiled and emulated without a profile."""

from collections.abc import Mapping
from enum import Enum

from gpa_lsp.lsp.option import FLAG, Option
from gpa_lsp.lsp.setting_values import (
    make_seconds_reader,
    read_architecture,
    read_flag,
    read_mebibytes,
    read_name,
)


class HintChoice(Enum):
    """Which lines get a hint of what was emulated, in the words of the settings."""

    EXCESS = "excess"
    """Those that move more than they must, or diverge."""
    ALL = "all"
    OFF = "off"


def _read_hint_choice(value: object) -> HintChoice:
    try:
        return HintChoice(value)
    except ValueError:
        raise ValueError("one of " + ", ".join(choice.value for choice in HintChoice)) from None


SOURCE_OPTIONS: Mapping[str, Option] = {
    "static.enable": Option(
        field="compiles_sources",
        read=read_flag,
        summary=(
            "Compile a CUDA source when it is opened and saved, and show registers, shared memory, occupancy and what its code says, without any "
            "profile. Only our own compiler runs, with flags from a list, on the text and its headers; nothing of the project is run, and nothing "
            "at all in a workspace that is not trusted."
        ),
        schema=FLAG,
        default=True,
    ),
    "static.onChange": Option(
        field="compiles_on_change",
        read=read_flag,
        summary="Also while it is edited, from what the editor holds.",
        schema=FLAG,
        default=False,
    ),
    "static.debounceSeconds": Option(
        field="static_pause_s",
        read=make_seconds_reader(0.0, 3600.0),
        summary="Time without another edit before that.",
        schema={"type": "number", "minimum": 0, "maximum": 3600},
        default=0.5,
    ),
    "static.compilerMessages": Option(
        field="shows_compiler_messages",
        read=read_flag,
        summary="Errors and warnings of that compiler among the problems.",
        schema=FLAG,
        default=True,
    ),
    "static.architecture": Option(
        field="static_architecture",
        read=read_architecture,
        summary="Architecture to compile for, such as `sm_86`; without one the newest that the source's compile command names.",
        schema={"type": ["string", "null"], "pattern": "^sm_\\d{2,3}[af]?$"},
        default=None,
    ),
    "static.timeoutSeconds": Option(
        field="static_timeout_s",
        read=make_seconds_reader(1.0, 3600.0),
        summary="The compiler is ended after this time.",
        schema={"type": "number", "minimum": 1, "maximum": 3600},
        default=60.0,
    ),
    "emulation.enable": Option(
        field="emulates",
        read=read_flag,
        summary=(
            "Emulate the launches that `NAME.launch.toml` describes beside `NAME.cu`, when either is opened or saved, and show what lines do to "
            "memory, where warps diverge, what goes wrong, and predicted data volumes, without a GPU. No host code is run, and nothing at all in a "
            "workspace that is not trusted."
        ),
        schema=FLAG,
        default=True,
    ),
    "emulation.seconds": Option(
        field="emulation_s",
        read=make_seconds_reader(0.1, 600.0),
        summary="For one launch; all of a source may take twice that. What was executed until then counts.",
        schema={"type": "number", "minimum": 0.1, "maximum": 600},
        default=5.0,
    ),
    "emulation.memoryMiB": Option(
        field="emulation_memory_bytes",
        read=read_mebibytes,
        summary="Memory for one launch: arrays, registers and traces together.",
        schema={"type": "integer", "minimum": 16, "maximum": 1048576},
        default=1024,
    ),
    "emulation.machine": Option(
        field="emulation_machine",
        read=read_name,
        summary="GPU to predict for, such as `A100`; without one a GPU of the architecture that is compiled for.",
        schema={"type": ["string", "null"]},
        default=None,
    ),
    "emulation.inlayHints": Option(
        field="emulation_hints",
        read=_read_hint_choice,
        summary="Sectors, wavefronts and divergence at line ends: where there is more than need be, at all lines, or not at all.",
        schema={"enum": [choice.value for choice in HintChoice]},
        default="excess",
    ),
    "emulation.diagnostics": Option(
        field="shows_emulation_diagnostics",
        read=read_flag,
        summary="Uncoalesced, conflicting, divergent and faulty lines among the problems.",
        schema=FLAG,
        default=True,
    ),
    "emulation.exploreSeconds": Option(
        field="exploration_s",
        read=make_seconds_reader(0.0, 600.0),
        summary="Time for looking for a block that is predicted to be faster, after each prediction; 0 looks for none.",
        schema={"type": "number", "minimum": 0, "maximum": 600},
        default=3.0,
    ),
}
"""The editor's name of an option → what it is."""
