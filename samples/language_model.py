"""A language model that keeps its state: write on, letter by letter, from where it stopped.

The model knows how often a letter followed two others in a short text. The letter before the last
is a variable of the model, so that each call takes one letter, as a decoder with a cache does.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from vinoir import ir

TEXT = "the cat sat on the mat. the rat sat on the hat. a cat ate the rat that sat on the mat. "
LETTERS = sorted(set(TEXT))


def build() -> ir.Model:
    """Letters in, how likely each letter is next out; the letter before stays inside."""
    numbers = [LETTERS.index(letter) for letter in TEXT]
    counts = np.full((len(LETTERS),) * 3, 1e-3, np.float32)
    for one, two, three in zip(numbers, numbers[1:], numbers[2:], strict=False):
        counts[one, two, three] += 1

    net = ir.Builder("letters")
    letter = net.parameter("letter", "i64", "1")
    blank = net.constant(np.int64([LETTERS.index(" ")]))
    before = net.add(
        "ReadValue", "opset6", [blank],
        variable_id="before", variable_type="i64", variable_shape="1",
    )  # fmt: skip
    pair = net.add("Concat", "opset1", [before, letter], axis=0)
    row = net.add("GatherND", "opset8", [net.constant(counts), pair], batch_dims=0)
    share = net.add("ReduceSum", "opset1", [row, net.constant(np.int64([0]))], keep_dims=True)
    net.result(net.add("Divide", "opset1", [row, share]), name="next")
    net.add("Assign", "opset6", [letter], variable_id="before")
    return net.model()


def write_on(program: ir.Program, text: str, length: int, seed: int = 1) -> str:
    """Feed a text letter by letter, then what the model says comes next."""
    rng = np.random.default_rng(seed)
    written = ""
    for place in range(len(text) + length - 1):
        letter = text[place] if place < len(text) else written[-1]
        likely = program({"letter": np.int64([LETTERS.index(letter)])})["next"]
        if place >= len(text) - 1:
            written += LETTERS[rng.choice(len(LETTERS), p=likely / likely.sum(dtype=np.float64))]
    return written


def main() -> None:
    program = ir.compile(build())
    print(repr(program.state))
    print(f"the c|{write_on(program, 'the c', 40)}")

    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "state.npz"
        program.state.save(kept)
        here = write_on(program, "a", 30)
        # Who begins anew writes something else; who loads the state goes on where it stopped.
        program.reset()
        anew = write_on(program, "a", 30)
        program.state.load(kept)
        again = write_on(program, "a", 30)
    print(f"goes on:      a|{here}")
    print(f"begins anew:  a|{anew}")
    print(f"loads, again: a|{again}")
    print(repr(program.state))


if __name__ == "__main__":
    main()
