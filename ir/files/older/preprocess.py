"""``<pre-process>``: means that the old runtime took off an input, one a channel or an image.

It subtracted them; ``<scale>`` was read, and no plug-in divided by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ....schemas import ElementType, IRError, UnreadableError, UsageError
from ...document import Info, whole
from .document import read_precision
from .layer import real

if TYPE_CHECKING:
    from lxml import etree

    from ...document import Output, Port
    from .document import OldLayer
    from .layer import Scene

    Remarks = Callable[[etree._Element, str], None]

#: Where the channels are, by rank: of three axes C comes first, of two last.
_CHANNELS = {2: 1, 3: 0, 4: 1, 5: 1}
_STORED = {"FP32": ElementType.F32, "FP16": ElementType.F16, "U8": ElementType.U8}


@dataclass
class Preprocess:
    """The means of one input."""

    element: etree._Element
    layer: int
    port: int
    name: str
    dims: tuple[int, ...]
    #: One a channel; or, of an image, its bytes.
    values: tuple[float, ...]
    images: tuple[tuple[int, int], ...]
    precision: ElementType
    scaled: bool

    def apply(self, made: Output, scene: Scene, note: Remarks) -> Output:
        """The input less its means."""
        builder = scene.builder
        if self.scaled:
            note(self.element, "<scale> of pre-process is left out: no old plug-in applied it")
        if not self.values and not self.images:
            return made
        rank, channel = len(self.dims), _CHANNELS[len(self.dims)]
        if made.tensor.type is not ElementType.F32:
            made = builder.add(
                "Convert", "opset1", [made], name=f"{self.name}/real", destination_type="f32"
            )
        if self.values:
            shape = [1] * rank
            shape[channel] = len(self.values)
            array = np.array(self.values, np.float32).reshape(shape)
            note(
                self.element,
                f'the means of the {len(self.values)} channels are taken off input "{self.name}" '
                "in the model: give it what the old runtime was given",
            )
        else:
            array = self._image(scene)
            note(self.element, f'the mean image is taken off input "{self.name}" in the model')
        means = builder.constant(array, name=f"{self.name}/means")
        return builder.add("Subtract", "opset1", [made, means], name=f"{self.name}/mean_free")

    def keep(self, note: Remarks) -> None:
        """Leave the means to the caller."""
        if self.images:
            raise UsageError(
                f'the mean image of input "{self.name}" is in the .bin and cannot be kept as text',
                hint="upgrade without keeping the pre-processing",
            )
        note(self.element, f'the means of input "{self.name}" are left to the caller')

    def _image(self, scene: Scene) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        if scene.weights is None:
            raise UnreadableError("the mean image is in the .bin, and there is no .bin")
        height, width = self.dims[-2:]
        planes = [
            scene.weights.view(offset, size)
            .copy()
            .view(self.precision.dtype)
            .reshape(height, width)
            for offset, size in self.images
        ]
        image = np.stack(planes).astype(np.float32)
        if len(self.dims) == 2:
            return image[0]
        if len(self.dims) == 5:
            return image[None, :, None]
        return image if len(self.dims) == 3 else image[None]

    def info(self) -> Info:
        """The means for rt_info."""
        means = ",".join(f"{value:.9g}" for value in self.values)
        return Info(
            "pre_process",
            {},
            [Info("input", {"value": self.name}), Info("mean", {"value": means})],
        )


def read_preprocess(
    element: etree._Element, inputs: Sequence[tuple[str, OldLayer, Port]]
) -> Preprocess:
    """The means, and the input that they are of: the named, the first of 4 axes, or the first."""
    wanted = (element.get("reference-layer-name") or "").strip()
    by_name = sorted(inputs, key=lambda row: row[0])
    if not by_name:
        raise IRError("pre-process is of an input, and the network has none")
    if wanted:
        found = next((row for row in by_name if row[0] == wanted), None)
        if found is None:
            names = ", ".join(f'"{row[0]}"' for row in by_name)
            raise IRError(f'pre-process is of input "{wanted}", the inputs are {names}')
    else:
        found = next((row for row in by_name if len(row[2].dims) == 4), by_name[0])
    name, layer, port = found
    dims = port.dims
    if len(dims) not in _CHANNELS:
        raise IRError(f'pre-process is of input "{name}", which has {len(dims)} axes')
    channels = dims[_CHANNELS[len(dims)]]
    precision = read_precision(element.get("mean-precision"))
    kind = _STORED.get(precision or "FP32")
    if kind is None:
        raise IRError(f"mean-precision is {precision}; known are {', '.join(_STORED)}")
    values: dict[int, float] = {}
    images: dict[int, tuple[int, int]] = {}
    seen: set[int] = set()
    scaled, last = False, -1
    for channel in element.iterchildren("channel"):
        last = whole(channel.get("id", str(last + 1)), "id of a channel")
        if last >= channels:
            raise IRError(f"a channel has the id {last}, the input has {channels} channels")
        if last in seen:
            raise IRError(f"two channels have the id {last}")
        seen.add(last)
        mean = channel.find("mean")
        if mean is not None:
            if mean.get("value") is None and mean.get("size") is None:
                raise IRError(f"<mean> of channel {last} has neither value nor size")
            if mean.get("value") is not None:
                values[last] = _number(mean, last)
            if mean.get("size") is not None:
                images[last] = _image_place(mean, dims, kind, last)
        scale = channel.find("scale")
        scaled |= (
            scale is not None and scale.get("value") is not None and _number(scale, last) != 1
        )
    for told, what in ((images, "image"), (values, "value")):
        if told and len(told) != channels:
            raise IRError(f"{len(told)} of {channels} channels have a mean {what}, all need one")
    return Preprocess(
        element, layer.id, port.id, name, dims,
        () if images else tuple(values[i] for i in range(len(values))),
        tuple(images[i] for i in range(len(images))), kind, scaled,
    )  # fmt: skip


def _number(element: etree._Element, channel: int) -> float:
    return real(f"{element.tag!s} of channel {channel}", element.get("value", ""))


def _image_place(
    mean: etree._Element, dims: tuple[int, ...], kind: ElementType, channel: int
) -> tuple[int, int]:
    size = whole(mean.get("size", ""), "size of a mean image")
    offset = whole(mean.get("offset", "0"), "offset of a mean image")
    height, width = dims[-2:]
    if size != height * width * kind.bits // 8:
        raise IRError(
            f"the mean image of channel {channel} has {size} bytes, {height}x{width} of {kind} "
            f"takes {height * width * kind.bits // 8}"
        )
    return offset, size
