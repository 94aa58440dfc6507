"""Commands of measuring, and the recording of launches: what runs in the workspace, and whether it may."""

from gpa_lsp.editor.permission import ANSWERS
from gpa_lsp.editor.protocol.commands import Arguments
from gpa_lsp.editor.protocol.plain_json import read_text
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.profile.collect.variables import parse_command_setting


def measure(session: Session, arguments: Arguments) -> bool:
    """Run the user's command now, for the document whose ``uri`` is the first argument, or for none."""
    return session.measure(read_text(arguments))


def cancel_measuring(session: Session, arguments: Arguments) -> bool:
    """End the run that goes on."""
    del arguments
    return session.cancel_measuring()


def answer_measuring(session: Session, arguments: Arguments) -> str:
    """Take the answer to whether the command that measures may run, ``once``, ``always`` or ``never``, or put the question again."""
    return session.question.take(ANSWERS.get(read_text(arguments) or "")).value


def set_trust(session: Session, arguments: Arguments) -> bool:
    """Whether the user trusts the workspace; anything but true is no trust."""
    is_trusted = bool(arguments) and arguments[0] is True
    session.set_trust(is_trusted)
    return is_trusted


async def record_launches(session: Session, arguments: Arguments) -> bool:
    """Run a program in the emulator, and emulate what it launched with every save.

    Arguments are the ``uri`` of a document or none, and a command, as a line or a list of words, or none for that of the settings.
    """
    try:
        command = parse_command_setting(arguments[1] if len(arguments) > 1 else None)
    except ValueError as error:
        session.client.warn(f"this is not {error}")
        return False
    return await session.record_launches(read_text(arguments), command)


def reload(session: Session, arguments: Arguments) -> None:
    """Forget every profile that was read and look again; also finds sources that came since."""
    del arguments
    session.loader.reload()


COMMANDS = {
    "gpaLsp.measure": measure,
    "gpaLsp.cancelMeasuring": cancel_measuring,
    "gpaLsp.answerMeasuring": answer_measuring,
    "gpaLsp.setTrust": set_trust,
    "gpaLsp.recordLaunches": record_launches,
    "gpaLsp.reload": reload,
}
