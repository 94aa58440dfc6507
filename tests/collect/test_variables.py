"""Commands stay what the user wrote, whatever files and kernels are called."""

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.profile.collect.variables import (
    CommandError,
    Values,
    expand_command,
    list_environment,
    parse_command,
    parse_command_setting,
    uses_variable,
)

VALUES = Values(
    workspace=Path("/home/me/work"),
    file=Path("/home/me/work/src/saxpy.cu"),
    kernel="saxpy",
    output=Path("/cache/1.ncu-rep"),
)

NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20)


def expand(*command: str, values: Values = VALUES) -> tuple[str, ...]:
    return expand_command(command, values, {"HOME": "/home/me", "ODD": "a b"})


def test_every_variable() -> None:
    words = "${file} ${fileDirname} ${fileBasename} ${fileBasenameNoExtension} ${workspaceFolder} ${kernel} ${output} ${env:HOME}"
    assert expand("./run", *words.split())[1:] == (
        "/home/me/work/src/saxpy.cu",
        "/home/me/work/src",
        "saxpy.cu",
        "saxpy",
        "/home/me/work",
        "saxpy",
        "/cache/1.ncu-rep",
        "/home/me",
    )


def test_several_in_one_word_and_in_the_program() -> None:
    assert expand("${workspaceFolder}/run", "-I${fileDirname}:${workspaceFolder}") == (
        "/home/me/work/run",
        "-I/home/me/work/src:/home/me/work",
    )


def test_without_a_kernel_the_variable_is_empty() -> None:
    assert expand("gpa-lsp", "profile", "--kernel", "${kernel}", values=Values(workspace=Path("/w")))[-1] == ""


def test_values_are_not_looked_at_again() -> None:
    odd = Values(workspace=Path("/w"), file=Path("/w/${output} $HOME *.cu"), kernel="a b; c")
    assert expand("./run", "${file}", "--kernel=${kernel}", values=odd)[1:] == (
        "/w/${output} $HOME *.cu",
        "--kernel=a b; c",
    )


def test_a_plain_dollar_for_the_shell() -> None:
    assert expand("bash", "-lc", "cd $${HOME} && echo $HOME $(date)") == (
        "bash",
        "-lc",
        "cd ${HOME} && echo $HOME $(date)",
    )


@pytest.mark.parametrize(
    "command",
    [
        ("bash", "-lc", "ncu ./app ${file}"),
        ("/bin/sh", "-c", "${file}"),
        ("ssh", "host", "ncu", "${file}"),
        ("sudo", "-n", "ssh", "host", "ncu", "${file}"),
        ("make", "profile", "FILE=${file}"),
        ("./run", "ncu ./app '${file}'"),
    ],
)
def test_values_that_a_shell_would_read_otherwise_are_refused(command: tuple[str, ...]) -> None:
    assert expand(*command) == tuple(word.replace("${file}", "/home/me/work/src/saxpy.cu") for word in command)
    for name in ("a b.cu", "$(touch x).cu", "`x`.cu", "a;b.cu", "a'b.cu", "a|b.cu", "a&b.cu", "a>b.cu", "~x$y.cu"):
        with pytest.raises(CommandError, match='write "\\$GPA_LSP_FILE" instead'):
            expand(*command, values=Values(workspace=Path("/w"), file=Path("/w") / name))


def test_kernels_of_foreign_profiles_do_not_get_into_scripts() -> None:
    odd = Values(workspace=Path("/w"), kernel="void k<int>(float*)")
    with pytest.raises(CommandError, match="GPA_LSP_KERNEL"):
        expand("ssh", "host", "ncu", "-k", "${kernel}", values=odd)


@given(NAMES)
def test_what_gets_into_a_script_is_one_word_of_it(name: str) -> None:
    values = Values(workspace=Path("/w"), file=Path("/w") / name)
    try:
        script = expand_command(("bash", "-c", "run ${file} x"), values, {})[2]
    except CommandError:
        return
    assert shlex.split(script, comments=True) == ["run", str(values.file), "x"]


@given(NAMES)
def test_names_are_no_options(name: str) -> None:
    values = Values(workspace=Path("/w"), file=Path("/w") / name)
    try:
        words = expand_command(("./run", "${fileBasename}"), values, {})
    except CommandError:
        return
    assert words == ("./run", Path("/w", name).name)
    assert not words[1].startswith("-")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("${flie}", r"\$\{flie\} is not a variable; known are \$\{file\}, .* write \$\$\{flie\}"),
        ("${}", "is not a variable"),
        ("${env:NONE}", "there is no environment variable NONE"),
    ],
)
def test_what_cannot_be_filled_in_is_said(word: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        expand("./run", word)


def test_a_variable_without_value_is_said() -> None:
    for name in ("file", "output"):
        with pytest.raises(CommandError, match="has no value here"):
            expand("./run", f"${{{name}}}", values=Values(workspace=Path("/w")))


def test_commands_as_settings_give_them() -> None:
    assert parse_command("make -C 'my folder' profile") == ("make", "-C", "my folder", "profile")
    assert parse_command(["a b", "c"]) == ("a b", "c")
    for bad in (None, 3, [], "", "   ", ["a", 1], [""], "a 'b", {"a": "b"}, ["a\0"]):
        with pytest.raises(ValueError, match="a command: "):
            parse_command(bad)


def test_a_command_that_was_taken_back() -> None:
    assert [parse_command_setting(value) for value in ("", "  ", [], ())] == [None] * 4
    assert parse_command_setting("make profile") == ("make", "profile")
    with pytest.raises(ValueError, match="a command: "):
        parse_command_setting([""])


def test_scripts_find_the_values_in_the_environment() -> None:
    assert list_environment(VALUES) == {
        "GPA_LSP_FILE": "/home/me/work/src/saxpy.cu",
        "GPA_LSP_FILE_BASENAME": "saxpy.cu",
        "GPA_LSP_FILE_BASENAME_NO_EXTENSION": "saxpy",
        "GPA_LSP_FILE_DIRNAME": "/home/me/work/src",
        "GPA_LSP_KERNEL": "saxpy",
        "GPA_LSP_OUTPUT": "/cache/1.ncu-rep",
        "GPA_LSP_WORKSPACE_FOLDER": "/home/me/work",
    }


def test_use_of_a_variable() -> None:
    assert uses_variable(("a", "b${output}c"), "output")
    assert not uses_variable(("a", "${outputs}"), "output")
    assert not uses_variable(None, "output")
