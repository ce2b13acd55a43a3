"""Run a model over an array that no memory needs to hold: by Dask, in blocks.

python batch.py [--cluster ADDRESS]

Needs Dask: pip install "vinoir[fleet]". What is sent to the workers is the model's path with sizes
and hashes; each of them maps the file once.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from make_digits import draw
from vinoir import ir


def pictures(count: int) -> da.Array:
    """Noisy digits 0, 1, 2, ... as an array in blocks of 50, made when they are asked for."""

    def block(block_info: dict) -> np.ndarray:
        ((begin, end), *_) = block_info[None]["array-location"]
        noise = np.random.default_rng(begin).normal(0, 0.1, (end - begin, 1, 16, 16))
        drawn = np.concatenate([draw(number % 10) for number in range(begin, end)])
        return (drawn + noise).astype(np.float32)

    chunks = ((50,) * (count // 50), 1, 16, 16)
    return da.map_blocks(block, chunks=chunks, dtype=np.float32)


def main(count: int = 1000) -> None:
    images = pictures(count)
    predictor = ir.Predictor(Path(__file__).parent / "digits.xml")
    # From [n, 1, 16, 16] to [n, 10].
    chances = da.map_blocks(predictor, images, drop_axis=[2, 3], chunks=(images.chunks[0], 10))
    found = chances.argmax(axis=1).compute()
    right = np.mean(found == np.arange(count) % 10)
    print(f"{count} pictures in {images.numblocks[0]} blocks: {right:.1%} are read rightly")


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    words.add_argument("--cluster", help="The address of a scheduler, or local.")
    given = words.parse_args()
    if given.cluster is None:
        main()
    else:
        from distributed import Client

        # A cluster of one's own need not look a hundred times a second at what its workers do.
        seldom = {
            "distributed.worker.profile.enabled": False,
            "distributed.admin.tick.interval": "500ms",
        }
        address = {} if given.cluster == "local" else {"address": given.cluster}
        with dask.config.set(seldom), Client(**address):
            main()
