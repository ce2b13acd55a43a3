"""Run a model: draw a digit, let the network read it, and look at what it saw on the way.

python recognise.py [DIGIT]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from make_digits import draw
from vinoir import ir

SHADES = " .:-=+*#%@"


def picture(image: np.ndarray) -> str:
    """A grey image as characters."""
    span = np.ptp(image) or 1
    levels = ((image - image.min()) / span * (len(SHADES) - 1)).astype(int)
    return "\n".join("".join(SHADES[level] * 2 for level in row) for row in levels)


def main(digit: int) -> None:
    model = ir.read(Path(__file__).parent / "digits.xml")
    image = draw(digit)
    print(picture(image[0, 0]))

    # Any tensor can be had by its layer's name, not only the model's outputs.
    outputs = ir.run(model, {"image": image}, outputs=["pool1", "digit"])
    print("\none of the first feature maps, after the pooling:")
    print(picture(outputs["pool1"][0, 3]))

    for number, chance in enumerate(outputs["digit"][0]):
        print(f"{number} {chance:7.2%} {'#' * round(40 * float(chance))}")
    print(f"it is a {outputs['digit'].argmax()}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
