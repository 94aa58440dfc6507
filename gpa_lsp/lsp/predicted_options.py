"""What the settings say about emulating: :class:`PredictedOptions`."""

from dataclasses import dataclass

from gpa_lsp.lsp.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedOptions:
    """What the settings say.

    Attributes:
        is_enabled: emulate at all.
        waits: sources are compiled by somebody else first, who says when that is done.
        seconds: for one launch.
        memory_bytes: likewise.
        machine: GPU to predict for; None for one of the architecture.
        explore_s: for looking for other blocks; 0 for not at all.
        architecture: to compile for; None for that of the compile command.
        limit_s: for the compiler.
        poll_s: between two looks at the descriptions.
    """

    is_enabled: bool = True
    waits: bool = True
    seconds: float = 5.0
    memory_bytes: int = 1 << 30
    machine: str | None = None
    explore_s: float = 3.0
    architecture: tuple[int, int] | None = None
    limit_s: float = 60.0
    poll_s: float = 1.0


def choose_predicted_options(settings: Settings) -> PredictedOptions:
    """The settings that are about this."""
    return PredictedOptions(
        is_enabled=settings.emulates,
        waits=settings.compiles_sources,
        seconds=settings.emulation_s,
        memory_bytes=settings.emulation_memory_bytes,
        machine=settings.emulation_machine,
        explore_s=settings.exploration_s,
        architecture=settings.static_architecture,
        limit_s=settings.static_timeout_s,
        poll_s=settings.poll_seconds,
    )
