import json

import pytest

from gpa_lsp.editor.settings import OPTIONS, HeldSettings, Settings, Severity, read_settings
from tests.conftest import ROOT


def test_every_option_is_read() -> None:
    raw = {
        "minShare": 10,
        "inlayHints": {"enable": False},
        "diagnostics": {"severity": "hint"},
        "pathMappings": {"/build": "/home/me/src"},
        "profileGlobs": ["out/*.ncu-rep"],
    }
    settings, complaints = read_settings(raw, Settings())
    assert complaints == ()
    assert settings == Settings(
        min_share_ratio=0.1,
        show_inlay_hints=False,
        diagnostic_severity=Severity.HINT,
        path_mappings=(("/build", "/home/me/src"),),
        profile_globs=("out/*.ncu-rep",),
    )


def test_names_with_dots_mean_the_same_as_nested_ones() -> None:
    assert read_settings({"inlayHints.enable": False}, Settings()) == read_settings(
        {"inlayHints": {"enable": False}}, Settings()
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("minShare", 101),
        ("minShare", -1),
        ("minShare", "0.1"),
        ("minShare", True),
        ("minShare", float("nan")),
        ("inlayHints.enable", "yes"),
        ("static.enable", 1),
        ("diagnostics.severity", "loud"),
        ("diagnostics.severity", ["hint"]),
        ("pathMappings", ["/build"]),
        ("pathMappings", {"/build": 3}),
        ("profileGlobs", "**/*.ncu-rep"),
        ("profileGlobs", [""]),
    ],
)
def test_senseless_values_are_named_and_the_old_ones_kept(name: str, value: object) -> None:
    base = Settings(min_share_ratio=0.3, serves_definition=True)
    settings, complaints = read_settings({name: value}, base)
    assert settings == base
    assert len(complaints) == 1
    assert complaints[0].startswith(f"gpaLsp.{name}: ")


def test_a_bad_value_does_not_keep_a_good_one_out() -> None:
    settings, complaints = read_settings({"minShare": 900, "definition.enable": True}, Settings())
    assert (settings.serves_definition, settings.min_share_ratio, len(complaints)) == (
        True,
        Settings().min_share_ratio,
        1,
    )


@pytest.mark.parametrize("raw", [None, [], "x", 3, {}, {"trace": {"server": "verbose"}, "path": "x", "minShare": None}])
def test_what_is_not_ours_changes_nothing(raw: object) -> None:
    assert read_settings(raw, Settings()) == (Settings(), ())


def test_a_command_that_is_taken_out_of_the_settings_is_forgotten() -> None:
    """Editors say null for an option that has no value any more."""
    base = Settings(profile_command=("./run",), build_command=("make",))
    settings, complaints = read_settings({"profile": {"command": None, "buildCommand": None}}, base)
    assert (settings.profile_command, settings.build_command, complaints) == (None, None, ())


def test_long_values_are_cut_in_the_complaint() -> None:
    (complaint,) = read_settings({"minShare": "x" * 10_000}, Settings())[1]
    assert len(complaint) < 200


@pytest.mark.parametrize(
    "raw",
    [{"emulation": {"memoryMiB": 64}}, {"symbols.enable": False}, {"blamer": "paper"}, {"maxDiagnosticsPerFile": 7}],
)
def test_a_former_option_is_told_where_it_went(raw: dict[str, object]) -> None:
    settings, (complaint,) = read_settings(raw, Settings())
    assert settings == Settings() and " is no option any more: " in complaint


@pytest.mark.parametrize(
    ("raw", "meant"),
    [
        ({"minshare": 3}, "minShare"),
        ({"profil": {"command": ["./run"]}}, "profile"),
        ({"static.enabled": False}, "static.enable"),
    ],
)
def test_a_slip_in_a_name_is_told_with_what_may_be_meant(raw: dict[str, object], meant: str) -> None:
    settings, complaints = read_settings(raw, Settings())
    assert (settings, complaints) == (Settings(), (f"gpaLsp.{next(iter(raw))} is no option; is gpaLsp.{meant} meant?",))


def test_options_of_a_client_are_none_of_the_servers_business() -> None:
    written = json.loads((ROOT / "editors" / "vscode" / "settings" / "client.json").read_text(encoding="utf-8"))
    raw = {name.removeprefix("gpaLsp."): one["default"] for name, one in written.items()}
    assert read_settings({**raw, "show": "anything"}, Settings()) == (Settings(), ())


def test_defaults_as_an_editor_writes_them_are_the_defaults() -> None:
    written = {name: option.default for name, option in OPTIONS.items()}
    assert read_settings(written, Settings()) == (Settings(), ())


def begin(options: object = None, *, is_trusted: bool = True) -> HeldSettings:
    held = HeldSettings()
    assert held.begin(options, is_trusted=is_trusted) == ()
    return held


def test_a_whole_configuration_takes_back_what_it_does_not_mention() -> None:
    held = begin({"minShare": 20})
    held.take({"minShare": 10, "history": {"enable": False}}, is_whole=True)
    assert (held.current.min_share_ratio, held.current.keeps_history) == (0.1, False)
    held.take({}, is_whole=True)
    assert (held.current.min_share_ratio, held.current.keeps_history) == (0.2, True)


def test_what_changed_leaves_the_rest_alone() -> None:
    held = begin()
    held.take({"minShare": 10})
    held.take({"history": {"enable": False}})
    assert (held.current.min_share_ratio, held.current.keeps_history) == (0.1, False)


def test_a_value_that_makes_no_sense_leaves_the_option_as_it_was() -> None:
    held = begin({"minShare": 20})
    held.take({"minShare": 10}, is_whole=True)
    (complaint,) = held.take({"minShare": "much"}, is_whole=True)
    assert "minShare" in complaint and held.current.min_share_ratio == 0.1


def test_without_trust_nothing_is_started_and_nothing_more_is_read() -> None:
    said = {"profile": {"command": ["x"]}, "profileGlobs": ["/**"], "pathMappings": {"/": "/"}, "minShare": 1}
    held = begin(said, is_trusted=False)
    assert held.current.profile_command is None and held.current.path_mappings == ()
    assert held.current.profile_globs == HeldSettings().current.profile_globs
    assert held.current.min_share_ratio == 0.01
    held.set_trust(True)
    assert held.current.profile_command == ("x",) and held.current.profile_globs == ("/**",)
    held.set_trust(False)
    assert held.current.profile_command is None
