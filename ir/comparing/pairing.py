"""Which input and output of an ONNX model is which of the model, where no name says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...schemas import Array
from ...schemas.printing import printable_name
from ..document import named_inputs
from ..execution import Interpreter, infer_for
from .references import OnnxRuntime
from .rounding import allowed_for, error

#: What is said first of a guess.
_UNNAMED = "no name in common"


def pair_ends(reference: OnnxRuntime, arrays: Mapping[int, Array]) -> list[str]:
    """Pair outputs by what both give for a sample, the rest in order; what of it is a guess.

    Where names say which is which, or there is but one, nothing is done and nothing is said.
    """
    inputs = [names for _, names in named_inputs(reference.model.parameters)]
    free = [names[0] for names in inputs if not {*names} & {*reference.inputs}]
    said = []
    if len(free) > 1:
        said.append(
            f"{_UNNAMED}: inputs are paired in order: {', '.join(map(printable_name, free))}"
        )
    if reference.in_order and len(reference.model.results) > 1:
        said.append(f"{_UNNAMED}: outputs are paired {_pair_outputs(reference, arrays)}")
    return said


def _pair_outputs(reference: OnnxRuntime, arrays: Mapping[int, Array]) -> str:
    """Pair outputs by what both give for a sample, the rest in order; in words how it was done."""
    model, named = reference.model, reference.names.outputs
    inferred = infer_for(model, arrays)
    reference.begin(arrays, inferred)
    told = reference.told(model.results, {})
    outputs = Interpreter(model, None, inferred=inferred)(arrays, {})
    places = _places(
        [outputs[result.id][0] for result in model.results],
        [told[result.id, 0] for result in model.results],
    )
    if places == sorted(places):
        return "in order"
    theirs = [named[result.id] for result in model.results]
    for result, place in zip(model.results, places, strict=True):
        named[result.id] = theirs[place]
    moved = ", ".join(
        f"{printable_name(result.name)} is {printable_name(theirs[place][0])}"
        for number, (result, place) in enumerate(zip(model.results, places, strict=True))
        if place != number
    )
    return f"by their values, in another order: {moved}"


def _places(ours: Sequence[Array], theirs: Sequence[Array]) -> list[int]:
    """The place in ``theirs`` of each of ours: where they agree, its own first; else in order."""
    found = {place: place for place, one in enumerate(ours) if _agree(one, theirs[place])}
    free = [place for place in range(len(theirs)) if place not in found]
    for number, one in enumerate(ours):
        if number not in found:
            same = next((place for place in free if _agree(one, theirs[place])), None)
            if same is not None:
                found[number] = same
                free.remove(same)
    rest = iter(free)
    return [found[place] if place in found else next(rest) for place in range(len(ours))]


def _agree(found: Array, wanted: Array) -> bool:
    """Whether two arrays of one shape and kind are as near as outputs of whole models may be."""
    if found.shape != wanted.shape or found.dtype.kind != wanted.dtype.kind:
        return False
    return error(found, wanted) <= allowed_for(wanted)
