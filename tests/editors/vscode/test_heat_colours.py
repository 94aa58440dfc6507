"""Hints can be read on the hottest lines: 4.5 : 1, as the Web Content Accessibility Guidelines 2.2 (1.4.3) ask of small text."""

import json
from typing import Any

import pytest

from tests.conftest import ROOT

LEAST_CONTRAST = 4.5
# What Visual Studio Code's own themes have: kind of theme → ground of the text, and what stands behind hints (a tenth of the colour of badges). Hints
# of themes without high contrast are #969696, 2.96 : 1 on white and 4.2 : 1 on hot lines of the dark theme: the extension names other colours.
THEMES = {
    "dark": ("1f1f1f", "616161"),
    "highContrast": ("000000", "ffffff"),
    "highContrastLight": ("ffffff", "0f4a85"),
    "light": ("ffffff", "0069cc"),
}


def read_contributions() -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((ROOT / "editors" / "vscode" / "package.json").read_text(encoding="utf-8"))
    contributions: dict[str, Any] = manifest["contributes"]
    return contributions


def list_grounds(theme: str) -> list[str]:
    levels = [
        one["defaults"][theme]
        for one in read_contributions()["colors"]
        if one["id"].startswith("gpaLsp.heat.") and one["id"][-1].isdigit()
    ]
    assert len(levels) == 20
    return levels


def read_text_colour(theme: str, kind: str) -> str:
    """The colour of hints or lenses, for which the extension gives the editor's another default."""
    wanted = f"editor{kind}.foreground"
    (colour,) = [one["defaults"][theme] for one in read_contributions()["colors"] if one["id"] == wanted]
    return str(colour).removeprefix("#")


def read_colour(text: str) -> tuple[float, ...]:
    return tuple(int(text[at : at + 2], 16) / 255 for at in range(0, len(text), 2))


def measure_luminance(colour: tuple[float, ...]) -> float:
    red, green, blue = (one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def measure_contrast(ground: str, heat: str, text: str, badge: str) -> float:
    low, high = sorted(
        measure_luminance(one) for one in (lay(lay(read_colour(ground), heat), f"{badge}1a"), read_colour(text))
    )
    return (high + 0.05) / (low + 0.05)


def lay(ground: tuple[float, ...], colour: str) -> tuple[float, ...]:
    """A ground with a colour over it, which lets some of it through."""
    *tint, alpha = read_colour(colour.removeprefix("#"))
    return tuple(below + (above - below) * alpha for below, above in zip(ground, tint, strict=True))


@pytest.mark.parametrize("theme", THEMES)
def test_hints_can_be_read_on_the_hottest_lines(theme: str) -> None:
    ground, badge = THEMES[theme]
    contrasts = [
        measure_contrast(ground, heat, read_text_colour(theme, "InlayHint"), badge) for heat in list_grounds(theme)
    ]
    assert min(contrasts) >= LEAST_CONTRAST, contrasts


@pytest.mark.parametrize("theme", THEMES)
def test_lenses_can_be_read(theme: str) -> None:
    """Lenses stand between lines, on plain ground. The editor's own have 3.15 : 1 on white."""
    ground = THEMES[theme][0]
    assert measure_contrast(ground, "#00000000", read_text_colour(theme, "CodeLens"), ground) >= LEAST_CONTRAST
