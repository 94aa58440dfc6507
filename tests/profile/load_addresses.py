"""Where a launch's code was loaded: the kernel's base address, from whichever table the report has."""

from gpa_lsp.profile.model import Launch, LoadedFunction, Profile


def find_loaded_functions(profile: Profile, launch: Launch) -> tuple[LoadedFunction, ...]:
    """Every function of the launch's module whose load address is known, ascending by address.

    Reports from 2022.2 on store a function table per module. Older ones store addresses only (``launch.function_addresses``), without names:
    where there is exactly one, it is the kernel's own; where there are several (the kernel and the device functions it calls, ascending, not
    kernel first) this function cannot tell which is which and returns nothing, and the sizes of the image's functions must decide.

    Source: one address per launch, equal to the lowest executed instruction and with every sample inside ``[address, address + size of
    .text.<kernel>)``, in reports of 2020.3 (compute capability 8.0, 8.6) and 2022.1 (8.6); the same address as in the function table in
    reports of 2022.2 to 2026.2.
    """
    module = None if launch.module_id is None else profile.modules.get(launch.module_id)
    if module is not None and module.functions:
        return module.functions
    if len(launch.function_addresses) == 1 and launch.mangled_name:
        return (LoadedFunction(name=launch.mangled_name, address=launch.function_addresses[0]),)
    return ()


def find_kernel_address(profile: Profile, launch: Launch) -> int | None:
    """The address of the kernel's first instruction; None when the profile does not tell it.

    A module may hold one name at several addresses (merged source entries); then the one among the launch's own function addresses counts.
    """
    named = [found.address for found in find_loaded_functions(profile, launch) if found.name == launch.mangled_name]
    own = [address for address in named if address in launch.function_addresses]
    return next(iter(own or named), None)
