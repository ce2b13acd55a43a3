"""Rearrangements of IR files that change nothing, made on the XML itself."""

from __future__ import annotations

import random

from model_edits import Pair, around


def rearrange(pair: Pair, rng: random.Random) -> dict[tuple[tuple[str, ...], int], int]:
    """Give all layers other ids, names and places, all edges other places, repack the .bin.

    Returns the new id of each layer, by the names around it and its old id.
    """
    moved: dict[tuple[tuple[str, ...], int], int] = {}
    for graph in pair.graphs():
        layers, edges = graph.find("layers"), graph.find("edges")
        rows = list(layers)
        ids = rng.sample(range(10 * len(rows)), len(rows))
        new = {x.get("id"): str(number) for x, number in zip(rows, ids, strict=True)}
        moved |= {(around(graph), int(old)): int(number) for old, number in new.items()}
        for layer in rows:
            layer.set("id", new[layer.get("id")])
        for e in [] if edges is None else list(edges):
            e.set("from-layer", new[e.get("from-layer")])
            e.set("to-layer", new[e.get("to-layer")])
        for holder in (layers, edges):
            if holder is not None:
                children = list(holder)
                rng.shuffle(children)
                holder[:] = children
        if graph.tag != "net":
            owner = graph.getparent()
            entries = owner.find(graph.tag.replace("body", "port_map"))
            for entry in [] if entries is None else list(entries):
                entry.set("internal_layer_id", new[entry.get("internal_layer_id")])
            turns = owner.find("back_edges")
            for e in [] if turns is None else list(turns):
                e.set("from-layer", new[e.get("from-layer")])
                e.set("to-layer", new[e.get("to-layer")])
    layers = list(pair.tree.iter("layer"))
    for layer, number in zip(layers, rng.sample(range(10**7), len(layers)), strict=True):
        layer.set("name", f"n{number}")
    repack(pair, rng)
    return moved


def repack(pair: Pair, rng: random.Random) -> None:
    """Lay every constant out anew, in a random order with gaps."""
    rows = [
        layer.find("data") for layer in pair.tree.iter("layer") if layer.get("type") == "Const"
    ]
    rows = [data for data in rows if data is not None and data.get("offset") is not None]
    rng.shuffle(rows)
    packed = bytearray()
    for data in rows:
        begin, size = int(data.get("offset")), int(data.get("size"))
        packed += bytes(rng.randrange(3) * 64 + -len(packed) % 64)
        data.set("offset", str(len(packed)))
        packed += pair.weights[begin : begin + size]
    pair.weights = bytes(packed)
