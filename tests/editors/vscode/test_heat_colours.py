"""Hints can be read on the hottest lines: 4.5 : 1, as the Web Content Accessibility Guidelines 2.2 (1.4.3) ask of small text."""

import json

import pytest

from tests.conftest import ROOT

LEAST_CONTRAST = 4.5
# What Visual Studio Code's own themes have: kind of theme → ground of the text, and colour of hints. Hints of its light theme have 2.96 : 1 on white,
# and no extension can say otherwise; heat may take little of that.
THEMES = {"dark": ("1f1f1f", "969696"), "highContrast": ("000000", "ffffff"), "highContrastLight": ("ffffff", "292929")}
LIGHT = ("ffffff", "969696")


def list_grounds(theme: str) -> list[str]:
    colours = json.loads((ROOT / "editors" / "vscode" / "package.json").read_text(encoding="utf-8"))["contributes"][
        "colors"
    ]
    levels = [
        one["defaults"][theme] for one in colours if one["id"].startswith("gpaLsp.heat.") and one["id"][-1].isdigit()
    ]
    assert len(levels) == 20
    return levels


def read_colour(text: str) -> tuple[float, ...]:
    return tuple(int(text[at : at + 2], 16) / 255 for at in range(0, len(text), 2))


def measure_luminance(colour: tuple[float, ...]) -> float:
    red, green, blue = (one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def measure_contrast(ground: str, heat: str, text: str) -> float:
    *tint, alpha = read_colour(heat.removeprefix("#"))
    mixed = tuple(below + (above - below) * alpha for below, above in zip(read_colour(ground), tint, strict=True))
    low, high = sorted((measure_luminance(mixed), measure_luminance(read_colour(text))))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_hints_can_be_read_on_the_hottest_lines(theme: str) -> None:
    ground, text = THEMES[theme]
    contrasts = [measure_contrast(ground, heat, text) for heat in list_grounds(theme)]
    assert min(contrasts) >= LEAST_CONTRAST, contrasts


def test_heat_leaves_hints_of_the_light_theme_nearly_as_they_are() -> None:
    contrasts = [measure_contrast(LIGHT[0], heat, LIGHT[1]) for heat in list_grounds("light")]
    assert min(contrasts) >= 0.8 * measure_contrast(LIGHT[0], "#00000000", LIGHT[1]), contrasts
