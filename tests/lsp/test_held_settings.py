"""What holds of the settings a client sends, one after the other."""

from gpa_lsp.lsp.held_settings import HeldSettings


def begin(options: object = None, *, is_trusted: bool = True) -> HeldSettings:
    held = HeldSettings()
    assert held.begin(options, is_trusted=is_trusted) == ()
    return held


def test_a_whole_configuration_takes_back_what_it_does_not_mention() -> None:
    held = begin({"minShare": 20})
    held.take({"minShare": 10, "symbols": {"enable": False}}, is_whole=True)
    assert (held.current.min_share_ratio, held.current.show_symbols) == (0.1, False)
    held.take({}, is_whole=True)
    assert (held.current.min_share_ratio, held.current.show_symbols) == (0.2, True)


def test_what_changed_leaves_the_rest_alone() -> None:
    held = begin()
    held.take({"minShare": 10})
    held.take({"symbols": {"enable": False}})
    assert (held.current.min_share_ratio, held.current.show_symbols) == (0.1, False)


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
