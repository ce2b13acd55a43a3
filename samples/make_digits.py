"""Build a small network that reads digits, with the builder, and write it as IR.

Two convolutions with fixed random filters look at the image, max pooling keeps what they find
wherever it moves, and one matrix, fitted by least squares to a few thousand drawn digits,
tells the digit from what was found.

    python make_digits.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from vinoir import ir

#: Seven rows of five points for each digit.
GLYPHS = """
.###. ..#.. .###. .###. ...#. ##### ..##. ##### .###. .###.
#...# .##.. #...# #...# ..##. #.... .#... ....# #...# #...#
#..## ..#.. ....# ....# .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. ..##. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# ..#.. #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# ..#.. #...# ...#.
.###. .###. ##### .###. ...#. .###. .###. ..#.. .###. .##..
"""


def glyph(digit: int) -> np.ndarray:
    """A digit's points, 7 by 5."""
    rows = [line.split()[digit] for line in GLYPHS.strip().splitlines()]
    return np.array([[point == "#" for point in row] for row in rows], np.float32)


def draw(digit: int, down: int = 1, across: int = 3) -> np.ndarray:
    """An image of a digit, (1, 1, 16, 16), twice the size of its glyph."""
    image = np.zeros((1, 1, 16, 16), np.float32)
    image[0, 0, down : down + 14, across : across + 10] = np.kron(glyph(digit), np.ones((2, 2)))
    return image


def drawn(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Many images, moved and noisy, and their digits."""
    digits = rng.integers(0, 10, count)
    places = zip(rng.integers(0, 3, count), rng.integers(0, 7, count), strict=True)
    images = [draw(d, y, x) for d, (y, x) in zip(digits, places, strict=True)]
    clean = np.concatenate(images)
    return clean + 0.15 * rng.standard_normal(clean.shape).astype("f4"), digits


def pool(net: ir.Builder, x: ir.Output, name: str) -> ir.Output:
    """A MaxPool-14 that halves the image."""
    return net.add(
        "MaxPool", "opset14", [x], name=name,
        kernel=(2, 2), strides=(2, 2), pads_begin=(0, 0), pads_end=(0, 0),
    )[0]  # fmt: skip


def build(reading: np.ndarray | None) -> ir.Model:
    """The network; without the last matrix, it ends with what it found in the image."""
    rng = np.random.default_rng(7)
    net = ir.Builder("digits")
    x = net.parameter("image", "f32", "1..64,1,16,16")
    for number, (given, made) in enumerate([(1, 12), (12, 32)], 1):
        filters = (rng.standard_normal((made, given, 3, 3)) / np.sqrt(9 * given)).astype("f4")
        x = net.add(
            "Convolution", "opset1", [x, net.constant(filters, name=f"filters{number}")],
            name=f"look{number}", strides=(1, 1), dilations=(1, 1),
            pads_begin=(1, 1), pads_end=(1, 1), auto_pad="explicit",
        )  # fmt: skip
        x = pool(net, net.add("ReLU", "opset1", [x], name=f"found{number}"), f"pool{number}")
    x = net.add(
        "Reshape", "opset1", [x, net.constant(np.array([0, -1]), name="flat")],
        name="features", special_zero=True,
    )  # fmt: skip
    if reading is not None:
        matrix = net.constant(reading.astype("f4"), name="reading")
        x = net.add("MatMul", "opset1", [x, matrix], name="scores")
        x = net.add("SoftMax", "opset8", [x], name="chances", axis=1)
    net.result(x, name="digit")
    return net.model()


def main(folder: Path) -> None:
    """Fit the last matrix and write the model, with an image to try it on."""
    images, digits = drawn(4000, np.random.default_rng(0))
    looker = ir.compile(build(None))
    found = np.concatenate([looker([batch])[0] for batch in np.split(images, 100)])
    wanted = 8 * (np.eye(10)[digits] - 0.1)
    square = found.T.astype("f8") @ found + 20 * np.eye(found.shape[1])
    reading = np.linalg.solve(square, found.T.astype("f8") @ wanted)
    ir.write(build(reading), folder / "digits.xml")
    np.save(folder / "seven.npy", draw(7))
    print(f"wrote {folder / 'digits.xml'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
