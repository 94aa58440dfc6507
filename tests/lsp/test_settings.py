import pytest

from gpa_lsp.lsp.settings import OPTIONS, Settings, Severity, read_settings


def test_every_option_is_read() -> None:
    raw = {
        "minShare": 10,
        "maxDiagnosticsPerFile": 7,
        "inlayHints": {"enable": False},
        "diagnostics": {"enable": False, "severity": "hint"},
        "pathMappings": {"/build": "/home/me/src"},
        "profileGlobs": ["out/*.ncu-rep"],
        "pollSeconds": 2,
    }
    settings, complaints = read_settings(raw, Settings())
    assert complaints == ()
    assert settings == Settings(
        min_share_ratio=0.1,
        max_diagnostics_per_file=7,
        show_inlay_hints=False,
        show_diagnostics=False,
        diagnostic_severity=Severity.HINT,
        path_mappings=(("/build", "/home/me/src"),),
        profile_globs=("out/*.ncu-rep",),
        poll_seconds=2.0,
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
        ("maxDiagnosticsPerFile", -1),
        ("maxDiagnosticsPerFile", 1.5),
        ("inlayHints.enable", "yes"),
        ("diagnostics.enable", 1),
        ("diagnostics.severity", "loud"),
        ("diagnostics.severity", ["hint"]),
        ("pathMappings", ["/build"]),
        ("pathMappings", {"/build": 3}),
        ("profileGlobs", "**/*.ncu-rep"),
        ("profileGlobs", [""]),
        ("pollSeconds", 0),
        ("pollSeconds", 1e9),
    ],
)
def test_senseless_values_are_named_and_the_old_ones_kept(name: str, value: object) -> None:
    base = Settings(min_share_ratio=0.3, poll_seconds=9.0)
    settings, complaints = read_settings({name: value}, base)
    assert settings == base
    assert len(complaints) == 1
    assert complaints[0].startswith(f"gpaLsp.{name}: ")


def test_a_bad_value_does_not_keep_a_good_one_out() -> None:
    settings, complaints = read_settings({"minShare": 900, "pollSeconds": 3}, Settings())
    assert (settings.poll_seconds, settings.min_share_ratio, len(complaints)) == (3.0, Settings().min_share_ratio, 1)


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


def test_every_option_names_a_field() -> None:
    assert {option.field for option in OPTIONS.values()} == set(Settings.__dataclass_fields__)


def test_defaults_as_an_editor_writes_them_are_the_defaults() -> None:
    written = {name: option.default for name, option in OPTIONS.items()}
    assert read_settings(written, Settings()) == (Settings(), ())
