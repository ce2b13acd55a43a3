"""Upgraded models, and what is made of them, by copy.deepcopy, pickle, and in a Predictor."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from older.network import small
from test_older_values import CASES, built
from vinoir import ir

WAYS: dict[str, Callable[[Any], Any]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_a_copy_of_an_upgraded_model_is_the_model(name: str, way: str) -> None:
    file, given, _ = built(CASES[name])
    model = ir.loads(file.xml, file.bin)
    other = WAYS[way](model)
    assert ir.dumps(other) == ir.dumps(model)
    assert other.origin == model.origin
    for found, want in zip(
        ir.run(other, given).values(), ir.run(model, given).values(), strict=True
    ):
        np.testing.assert_array_equal(found, want)


def remarked() -> ir.Model:
    """A model whose upgrade left remarks."""
    file = small(6)
    model = ir.loads(file.xml.replace(b'"max"', b'"max" odd="1"'), file.bin)
    assert model.origin is not None
    assert any("odd" in remark.message for remark in model.origin.remarks)
    return model


def test_the_remarks_go_along() -> None:
    model = remarked()
    other = pickle.loads(pickle.dumps(model))
    assert model.origin is not None
    assert [str(one) for one in other.origin.remarks] == [str(one) for one in model.origin.remarks]


@pytest.mark.parametrize("way", WAYS)
def test_after_an_edit_and_a_reshape(way: str) -> None:
    model = remarked()
    model.edit.rename("image", "picture")
    ir.reshape(model, {"picture": "2,3,8,8"})
    assert ir.dumps(WAYS[way](model)) == ir.dumps(model)


@pytest.mark.parametrize("way", WAYS)
def test_programs(way: str) -> None:
    program = ir.compile(remarked())
    x = np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype(np.float32)
    (want,) = program([x]).values()
    (found,) = WAYS[way](program)([x]).values()
    np.testing.assert_array_equal(found, want)


def test_a_predictor() -> None:
    model = remarked()
    x = np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype(np.float32)
    (want,) = ir.compile(model)([x]).values()
    found = ir.Predictor(model)(x)
    np.testing.assert_allclose(found, want, rtol=1e-6)
