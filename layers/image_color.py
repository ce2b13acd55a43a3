"""Colour images between YUV with halved chroma planes (NV12, I420) and RGB or BGR.

Specification pages: NV12toRGB-8, NV12toBGR-8, I420toRGB-8, I420toBGR-8, RGBtoNV12-17,
BGRtoNV12-17.

A chroma plane has one element for each block of two by two pixels. NV12 keeps U and V in turn
in one plane, I420 in two planes; all planes may also be the rows of one.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..schemas import ANY, Array, ElementType, IRError, Shape, Tensor
from ..schemas.attributes import Bool
from ..schemas.shapes import compatible
from .base import Op
from .budget import steps
from .movement_blocks import part, share

#: What a pixel's R, G and B are made of: so much of Y - 16, U - 128 and V - 128.
TO_RGB = np.array([[1.164, 0, 1.596], [1.164, -0.391, -0.813], [1.164, 2.018, 0]], np.float32)

#: What Y, U and V are made of: so much of R, G and B, and what is added.
FROM_RGB = np.array(
    [[0.257, 0.504, 0.098], [-0.148, -0.291, 0.439], [0.439, -0.368, -0.071]], np.float32
)
ADDED = np.array([16, 128, 128], np.float32)

#: So many pairs of pixels are coloured at a time.
BAND = 1 << 13


class ToColors(Op):
    """From YUV to three colours; ``chroma``: how many channels each chroma plane has."""

    rooms = 2

    chroma: ClassVar[tuple[int, ...]]
    reversed: ClassVar[bool]

    def colored(self, planes: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """What comes out for these planes."""
        kind = ElementType.DYNAMIC
        for tensor in planes:
            kind = kind.merge(tensor.type)
        check_type(kind)
        shape = as_image(planes[0].shape, 1)
        batch, height, width, _ = shape
        if len(planes) == 1:
            height = share(height * 2, 3)
        else:
            for tensor, channels in zip(planes[1:], self.chroma, strict=True):
                n, h, w, _ = as_image(tensor.shape, channels)
                shape = shape.merge(Shape((n, h * 2, w * 2, ANY)))
            batch, height, width, _ = shape
        part(height, 2)
        part(width, 2)
        return (Tensor(kind, Shape((batch, height, width, 3))),)

    def run(self, *planes: Array) -> tuple[Array, ...]:
        y, u, v = self.parted(*planes)
        colors = np.empty((*y.shape, 3), y.dtype)
        for image in zip(y, u, v, colors, strict=True):
            self.paint(*image)
        return (colors,)

    def parted(self, luma: Array, *chroma: Array) -> tuple[Array, Array, Array]:
        """Y of each pixel, and U and V of each two by two, as views of the planes."""
        if not chroma:
            batch, rows, width, _ = luma.shape
            height = rows * 2 // 3
            luma, rest = luma[:, :height], luma[:, height:]
            rest = rest.reshape(batch, width * (rows - height))
            count = len(self.chroma)
            chroma = tuple(
                plane.reshape(batch, height // 2, width // 2, channels)
                for plane, channels in zip(np.split(rest, count, 1), self.chroma, strict=True)
            )
        return luma[..., 0], chroma[0][..., 0], chroma[-1][..., -1]

    def paint(self, y: Array, u: Array, v: Array, colors: Array) -> None:
        """Make the colours of an image, or of an even number of its rows, some rows at a time."""
        height, width = y.shape
        some = max(1, BAND // max(width, 1))
        for first in steps(range(0, height // 2, some)):
            halves = slice(first, min(first + some, height // 2))
            rows = slice(2 * halves.start, 2 * halves.stop)
            bright = (y[rows].astype(np.float32) - ADDED[0]).reshape(-1, 2, width)
            bright *= TO_RGB[0, 0]  # as of all three
            centred = [
                plane[halves].astype(np.float32) - least
                for plane, least in zip((u, v), ADDED[1:], strict=True)
            ]
            for place, factors in enumerate(TO_RGB[::-1] if self.reversed else TO_RGB):
                color = bright
                for factor, plane in zip(factors[1:], centred, strict=True):
                    if factor:
                        color = color + (factor * plane).repeat(2, -1)[:, None]
                colors[rows, :, place] = limited(color, colors.dtype).reshape(-1, width)


class SemiPlanar(ToColors):
    """One chroma plane, of two channels."""

    chroma = (2,)

    def infer(self, y: Tensor, uv: Tensor | None = None) -> tuple[Tensor, ...]:
        return self.colored((y,) if uv is None else (y, uv))


class Planar(ToColors):
    """Two chroma planes, of one channel each."""

    chroma = (1, 1)

    def infer(
        self, y: Tensor, u: Tensor | None = None, v: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        if (u is None) != (v is None):
            raise IRError("2 inputs, there are 1 with all planes or 3")
        return self.colored((y,) if u is None or v is None else (y, u, v))


class NV12toRGBV8(SemiPlanar):
    """From NV12 to red, green and blue."""

    reversed = False


class NV12toBGRV8(SemiPlanar):
    """From NV12 to blue, green and red."""

    reversed = True


class I420toRGBV8(Planar):
    """From I420 to red, green and blue."""

    reversed = False


class I420toBGRV8(Planar):
    """From I420 to blue, green and red."""

    reversed = True


class FromColors(Op):
    """From three colours to NV12; a block's chroma is that of its mean colour."""

    rooms = 13

    output_count = (1, 2)

    reversed: ClassVar[bool]

    single_plane: Bool = True

    def infer(self, image: Tensor) -> tuple[Tensor, ...]:
        check_type(image.type)
        batch, height, width, _ = as_image(image.shape, 3)
        half = share(height, 2), share(width, 2)
        if self.single_plane:
            return (Tensor(image.type, Shape((batch, share(height * 3, 2), width, 1))),)
        return (
            Tensor(image.type, Shape((batch, height, width, 1))),
            Tensor(image.type, Shape((batch, *half, 2))),
        )

    def run(self, image: Array) -> tuple[Array, ...]:
        colors = image.astype(np.float32)
        if self.reversed:
            colors = colors[..., ::-1]
        batch, height, width, _ = colors.shape
        blocks = colors.reshape(batch, height // 2, 2, width // 2, 2, 3).mean((2, 4))
        luma = limited(colors @ FROM_RGB[:1].T + ADDED[:1], image.dtype)
        chroma = limited(blocks @ FROM_RGB[1:].T + ADDED[1:], image.dtype)
        if not self.single_plane:
            return luma, chroma
        return (np.concatenate([luma, chroma.reshape(batch, height // 2, width, 1)], 1),)


class RGBtoNV12V17(FromColors):
    """From red, green and blue to NV12."""

    until = 17
    reversed = False


class BGRtoNV12V17(FromColors):
    """From blue, green and red to NV12."""

    until = 17
    reversed = True


def check_type(kind: ElementType) -> None:
    """Refuse what is neither a byte nor a real number."""
    if not (kind.is_dynamic or kind.is_real or kind is ElementType.U8):
        raise IRError(f"element type {kind} is neither u8 nor a real one")


def as_image(shape: Shape, channels: int) -> Shape:
    """The shape of an image with so many channels, its last axis."""
    if shape.rank is None:
        return Shape.of_rank(4)
    if shape.rank != 4 or not compatible(shape[3], channels):
        raise IRError(f"shape {shape} is not that of images of {channels} channels (N, H, W, C)")
    return Shape((*shape[:3], ANY))


def limited(values: Array, dtype: np.dtype[np.generic]) -> Array:
    """Colour values from 0 to 255, of integers the nearest, halves to even."""
    held = np.clip(values, 0, 255)
    return (np.rint(held) if dtype.kind == "u" else held).astype(dtype)
