"""All arrays of a launch, wherever its description names them, and the launch with others in their place."""

from collections.abc import Mapping

from msgspec.structs import replace

from gpa_lsp.execution.launches.launch import Argument, ArrayArgument, LaunchDescription, StructArgument


def list_arrays(launch: LaunchDescription) -> list[ArrayArgument]:
    """Arrays that arguments or their members point to, that fill variables, and that memory alone names."""
    members = (
        member
        for one in launch.arguments
        for member in ([inner for _, inner in one.members] if isinstance(one, StructArgument) else [one])
    )
    return [one for one in (*members, *launch.variables, *launch.memory) if isinstance(one, ArrayArgument)]


def replace_arrays(launch: LaunchDescription, arrays: Mapping[str, ArrayArgument]) -> LaunchDescription:
    """The launch with some of its arrays replaced."""

    def change(one: Argument) -> Argument:
        if isinstance(one, StructArgument):
            members = ((at, arrays.get(inner.name, inner) if _is_array(inner) else inner) for at, inner in one.members)
            return replace(one, members=tuple(members))
        return arrays.get(one.name, one) if _is_array(one) else one

    return replace(
        launch,
        arguments=tuple(change(one) for one in launch.arguments),
        variables=tuple(arrays.get(one.name, one) for one in launch.variables),
        memory=tuple(arrays.get(one.name, one) if isinstance(one, ArrayArgument) else one for one in launch.memory),
    )


def _is_array(argument: Argument) -> bool:
    return isinstance(argument, ArrayArgument)
