"""A prediction in the words every answer is made of: :func:`answer_volumes`. All numbers are predicted, and the title says so."""

from collections.abc import Iterator

from gpa_lsp.diagnosis.analyses.answers import Answer, Bar, Finding, Missing, Table, Weight, list_columns
from gpa_lsp.execution.volumes.expressions import KernelAccesses
from gpa_lsp.execution.volumes.model import (
    ISSUE_LIMITERS,
    Bound,
    LayerReuse,
    Limiter,
    VolumeMode,
    VolumePrediction,
    describe_contradiction,
)
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.prose import NOTHING, Amount, Sentence, count, duration, factor, say, size, update_bytes

_LITTLE_RATIO = 0.05  # Parts of a volume below this are in the table, and are no finding
_DUST_BYTES = 5e-4  # Less per update is written as nothing
_MOST_NAMED = 8  # Accesses without an expression that are named one by one


def answer_volumes(prediction: VolumePrediction, kernel: KernelAccesses) -> Answer:
    """Answer of a prediction: limiters, volumes by level and cause, layer conditions."""
    if prediction.contradictions:
        return _answer_contradictions(prediction)
    if not prediction.bounds:
        summary = say("Predicted: the kernel touches no global memory, so there are no volumes.")
        return Answer(analysis="volumes", title="Data volumes, predicted", summary=summary, is_known=False)
    return Answer(
        analysis="volumes",
        title="Data volumes, predicted",
        summary=_summarise(prediction),
        findings=(*_list_findings(prediction), *(Finding(text=note) for note in prediction.notes)),
        bars=tuple(_list_bars(prediction)),
        tables=(_build_volume_table(prediction), _build_bound_table(prediction), *_build_reuse_table(prediction)),
        missing=tuple(_list_missing(kernel)),
    )


def _answer_contradictions(prediction: VolumePrediction) -> Answer:
    """Answer of a prediction that contradicts itself: the contradicting numbers, and no other one."""
    summary = say(
        "Not predicted: the volumes contradict each other, which is a defect of gpa-lsp. Please report it with the kernel."
    )
    findings = tuple(Finding(text=describe_contradiction(one), weight=Weight.HIGH) for one in prediction.contradictions)
    return Answer(
        analysis="volumes", title="Data volumes, predicted", summary=summary, findings=findings, is_known=False
    )


def _summarise(prediction: VolumePrediction) -> Sentence:
    volumes, lowest = prediction.volumes, prediction.bounds[0]
    model = " by the published model" if prediction.mode is VolumeMode.PAPER else ""
    return say(
        "Predicted{model} for the {gpu}: limited by {limiter}; each {worker} loads {loaded} from DRAM, stores {stored} there and loads {from_l2} "
        "from L2. All units together allow {rate}: at least {time} for the launch.",
        model=model,
        gpu=prediction.device.name,
        limiter=lowest.limiter.value,
        worker="thread" if prediction.launch.updates_per_thread == 1 else "update",
        loaded=update_bytes(volumes.dram_load),
        stored=update_bytes(volumes.dram_store),
        from_l2=update_bytes(volumes.l2_load),
        rate=Amount(value=prediction.updates_per_s, quantity=Quantity.UPDATES_PER_S),
        time=duration(prediction.duration_ns or 0.0),
    )


def _list_findings(prediction: VolumePrediction) -> Iterator[Finding]:
    volumes = prediction.volumes
    for reuse in prediction.reuse:
        yield from _judge_reuse(reuse, volumes.dram_load)
    if volumes.l2_load_capacity > _LITTLE_RATIO * volumes.l2_load:
        text = say(
            "Per update, {again} of {whole} are L2 reloads: the blocks that share an L1 need {factor} its size.",
            again=update_bytes(volumes.l2_load_capacity),
            whole=update_bytes(volumes.l2_load),
            factor=factor(prediction.l1_oversubscription),
        )
        remedy = say("A block that is shorter along y and z, or wider along x, allocates fewer lines.")
        yield Finding(text=text, weight=Weight.PLAIN, remedy=remedy, share_ratio=None)
    if volumes.dram_load_fetched > _LITTLE_RATIO * volumes.dram_load:
        text = say(
            "DRAM gives {unit} at once: per update, {along} of {whole} come along and are not used.",
            unit=size(prediction.device.dram_fetch_bytes),
            along=update_bytes(volumes.dram_load_fetched),
            whole=update_bytes(volumes.dram_load),
        )
        remedy = say(
            "Put what is used together into neighbouring bytes: an array for each field, or rows instead of columns."
        )
        yield Finding(text=text, weight=Weight.PLAIN, remedy=remedy)
    if volumes.dram_store_partial > _LITTLE_RATIO * volumes.dram_store:
        text = say(
            "Sectors are written partially: per update, {again} are stored again, and as many are read to complete them.",
            again=update_bytes(volumes.dram_store_partial),
        )
        remedy = say("Let neighbouring threads of a warp write whole sectors of 32 bytes.")
        yield Finding(text=text, weight=Weight.HIGH, remedy=remedy)
    if volumes.dram_store_again > _LITTLE_RATIO * volumes.dram_store:
        text = say(
            "Per update, {again} are stored again: threads write once more what L2 has dropped since they wrote it.",
            again=update_bytes(volumes.dram_store_again),
        )
        remedy = say("Keep the value in a register until it is final, or do all passes over a part that fits L2.")
        yield Finding(text=text, weight=Weight.PLAIN, remedy=remedy)


def _judge_reuse(reuse: LayerReuse, dram_load: float) -> Iterator[Finding]:
    if reuse.overlap < max(_DUST_BYTES, _LITTLE_RATIO * dram_load):
        return
    what = "rows" if reuse.axis == "y" else "layers"
    needed = say(
        "{size}, {factor} the size of L2{spanned}",
        size=size(reuse.needed_bytes),
        factor=factor(reuse.oversubscription),
        spanned=NOTHING
        if reuse.layers_needed is None
        else say(" (loads span {layers})", layers=count(reuse.layers_needed, what.removesuffix("s"))),
    )
    if reuse.holds:
        text = say(
            "The layer condition along {axis} holds: per update, L2 keeps {kept} of the {loaded} that earlier {what} loaded; that takes {needed}.",
            axis=reuse.axis,
            kept=update_bytes(reuse.hit),
            loaded=update_bytes(reuse.overlap),
            what=what,
            needed=needed,
        )
        yield Finding(text=text, weight=Weight.GOOD)
        return
    text = say(
        "The layer condition along {axis} fails: per update, {lost} that earlier {what} loaded come from DRAM again; keeping them takes {needed}.",
        axis=reuse.axis,
        lost=update_bytes(reuse.overlap - reuse.hit),
        what=what,
        needed=needed,
    )
    yield Finding(text=text, weight=Weight.HIGH, remedy=_advise_reuse(reuse))


def _advise_reuse(reuse: LayerReuse) -> Sentence:
    fits = NOTHING
    if reuse.transition_updates is not None:
        template = "; rows of {updates} would fit" if reuse.axis == "y" else "; layers of {side} by {updates} would fit"
        side = {} if reuse.axis == "y" else {"side": count(reuse.transition_updates)}
        fits = say(template, updates=count(reuse.transition_updates, "update"), **side)
    return say("Blocks that are longer along {axis} load less twice{fits}.", axis=reuse.axis, fits=fits)


def _list_bars(prediction: VolumePrediction) -> Iterator[Bar]:
    """Time by each limiter alone, as a part of the launch's."""
    for bound in prediction.bounds:
        words = say("alone {rate}", rate=Amount(value=bound.updates_per_s, quantity=Quantity.UPDATES_PER_S))
        yield Bar(label=bound.limiter.label, ratio=prediction.updates_per_s / bound.updates_per_s, words=words)


def _build_volume_table(prediction: VolumePrediction) -> Table:
    volumes = prediction.volumes
    unit = "wave" if prediction.mode is VolumeMode.PAPER else "block"
    passing = (("L2 → L1", "loads that L1 does not keep", volumes.l2_load_bypassing),)
    along = (("DRAM → L2", "loads: fetched along with it", volumes.dram_load_fetched),)
    again = (("L2 → DRAM", "stores: sectors written again later", volumes.dram_store_again),)
    rows = (
        ("L1 → registers", "loads: sectors of each warp", volumes.l1_load),
        ("L2 → L1", "loads: compulsory", volumes.l2_load_compulsory),
        ("L2 → L1", "loads: capacity", volumes.l2_load_capacity),
        *(passing if volumes.l2_load_bypassing else ()),
        ("L1 → L2", "stores", volumes.l2_store),
        ("DRAM → L2", f"loads: what each {unit} touches", volumes.dram_load_footprint),
        ("DRAM → L2", f"of it still in L2 from other {unit}s", 0.0 - volumes.dram_load_reused),
        *(along if _drop_dust(volumes.dram_load_fetched) else ()),
        ("DRAM → L2", "loads: to complete sectors", volumes.dram_load_partial),
        ("L2 → DRAM", "stores: compulsory", volumes.dram_store_compulsory),
        ("L2 → DRAM", "stores: sectors written in part", volumes.dram_store_partial),
        *(again if _drop_dust(volumes.dram_store_again) else ()),
    )
    return Table(
        title="Predicted volumes",
        columns=list_columns(
            "between | what | bytes per update [number] | bytes per thread [number] | whole launch [bytes]"
        ),
        rows=tuple(
            (between, what, value, prediction.scale_to_thread(value), prediction.scale_to_launch(value))
            for between, what, value in ((between, what, _drop_dust(number)) for between, what, number in rows)
        ),
        note=say(
            "The launch makes {updates}, {own} per thread.",
            updates=count(prediction.update_count, "update"),
            own=count(prediction.launch.updates_per_thread),
        ),
    )


def _drop_dust(bytes_per_update: float) -> float:
    """The volume, or 0 for a rounding error and for what hardly ever happens."""
    return bytes_per_update if abs(bytes_per_update) >= _DUST_BYTES else 0.0


def _build_bound_table(prediction: VolumePrediction) -> Table:
    return Table(
        title="Predicted limits",
        columns=list_columns("limiter | load per update [number] | of | alone, billion updates per second [number]"),
        rows=tuple(
            (bound.limiter.label, bound.load, _name_unit(bound), bound.updates_per_s / 1e9)
            for bound in prediction.bounds
        ),
        current_row=0,
        note=say(
            "{own} per SM, {blocks} per wave.",
            own=count(prediction.blocks_per_sm, "block"),
            blocks=count(prediction.wave.blocks),
        ),
    )


def _name_unit(bound: Bound) -> str:
    named = {Limiter.FLOPS: "operations", Limiter.BLOCKS: "blocks", Limiter.L1: "cycles of an SM's L1"}
    return named.get(bound.limiter, "cycles of an SM" if bound.limiter in ISSUE_LIMITERS else "bytes")


def _build_reuse_table(prediction: VolumePrediction) -> tuple[Table, ...]:
    rows = tuple(
        (
            "rows (y)" if reuse.axis == "y" else "layers (z)",
            "holds" if reuse.holds else "fails",
            reuse.overlap,
            reuse.hit,
            reuse.needed_bytes,
            reuse.oversubscription,
            reuse.layers_needed,
            None if reuse.transition_updates is None else round(reuse.transition_updates),
        )
        for reuse in prediction.reuse
        if reuse.overlap > 0
    )
    if not rows:
        return ()
    columns = list_columns(
        "reuse of | condition | bytes per update [number] | of them hit [number] | L2 needed [bytes] | "
        "times L2 [number] | spanned [count] | extent that fits [count]"
    )
    return (Table(title="Predicted layer conditions", columns=columns, rows=rows),)


def _list_missing(kernel: KernelAccesses) -> Iterator[Missing]:
    """Accesses whose volumes in other blocks the traced ones do not tell; alike accesses are named once."""
    named: dict[tuple[str, str, Sentence], None] = {}
    for access in () if kernel.is_whole else kernel.sampled:
        array = "an array" if access.array is None else kernel.arrays[access.array].name
        named[access.kind.name.lower(), array, access.why] = None
    for kind, array, why in list(named)[:_MOST_NAMED]:
        what = f"the volumes of {'an' if kind[0] == 'a' else 'a'} {kind} of {array} in blocks that were not traced"
        yield Missing(what=what, why=why)
