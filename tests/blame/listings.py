"""Random listings with scoreboards, branches and calls, for properties that hold whatever the code is."""

from hypothesis import strategies as st

REASONS = ("long_scoreboard", "short_scoreboard", "wait")

_PLAIN = (
    "LDG.E R{0}, [R{1}.64]",
    "LDS R{0}, [R{1}]",
    "STG.E [R{0}.64], R{1}",
    "MUFU.RCP R{0}, R{1}",
    "IADD3 R{0}, R{1}, R{2}, RZ",
)
_barrier = st.sampled_from(["-", "-", "0", "1"])


@st.composite
def control_codes(draw: st.DrawFn) -> str:
    """A control code over the scoreboards 0 and 1, so that instructions meet."""
    waits = draw(st.sampled_from(["-", "-", "-", "0", "1", "01"]))
    stall = draw(st.integers(1, 3))
    return f"B{waits}:R{draw(_barrier)}:W{draw(_barrier)}:-:S{stall:02}"


@st.composite
def instruction_texts(draw: st.DrawFn, labels: list[str], routines: list[str], *, returns: bool) -> str:
    """One instruction; it may jump to one of the labels, or call one of the routines."""
    kinds = ["plain"] * 5 + ["branch", "guarded branch", "partial wait", "exit"]
    kinds += ["call"] * 2 * bool(routines) + ["return"] * returns
    kind = draw(st.sampled_from(kinds))
    guard = draw(st.sampled_from(["", "", "@P0 "]))
    if kind == "branch":
        return f"BRA {draw(st.sampled_from(labels))}"
    if kind == "guarded branch":
        return f"@P0 BRA {draw(st.sampled_from(labels))}"
    if kind == "partial wait":
        return f"{guard}DEPBAR.LE SB{draw(st.integers(0, 1))}, {draw(st.integers(0, 2)):#x}"
    if kind == "exit":
        return "@P0 EXIT"
    if kind == "call":
        return f"{guard}CALL.REL.NOINC `({draw(st.sampled_from(routines))})"
    if kind == "return":
        return f"{guard}RET.REL.NODEC R20 0x0"
    registers = draw(st.tuples(*[st.integers(0, 3)] * 3))
    return guard + draw(st.sampled_from(_PLAIN)).format(*(2 * register for register in registers))


@st.composite
def routines(draw: st.DrawFn, name: str, callees: list[str]) -> list[str]:
    """The lines of a routine: labels of its own, jumps inside it only."""
    count = draw(st.integers(1, 8))
    labels = [f"{name.strip('$')}_{row}" for row in range(count)]
    lines = [f"{name}:"] if name.startswith("$") else []
    for label in labels:
        samples = draw(st.sampled_from(["", " # wait=1", " # long_scoreboard=7/3 short_scoreboard=2"]))
        text = draw(instruction_texts(labels, callees, returns=name.startswith("$")))
        lines += [f"{label}:", f"{draw(control_codes())} {text}{samples}"]
    lines.append("RET.REL.NODEC R20 0x0" if name.startswith("$") else "EXIT")
    return lines


@st.composite
def sections(draw: st.DrawFn) -> str:
    """A kernel with up to two local routines, which may call each other and themselves."""
    names = ["$one", "$two"][: draw(st.integers(0, 2))]
    return "\n".join(line for name in ["kernel", *names] for line in draw(routines(name, names)))
