"""Images of other sizes, and where their pixels come from, as ONNX Runtime has them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.schemas import UnsupportedError

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
from onnx import numpy_helper, reference  # noqa: E402  # only where onnx is there
from onnx_models import one_node  # noqa: E402

RNG = np.random.default_rng(0)
WORDS = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric", "align_corners"]


def fixed(proto: Any, **values: np.ndarray) -> Any:
    """The model with some of its inputs as constants."""
    kept = [row for row in proto.graph.input if row.name not in values]
    del proto.graph.input[:]
    proto.graph.input.extend(kept)
    proto.graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in values.items()
    )
    return proto


def same(proto: Any, **given: np.ndarray) -> None:
    session = runtime.InferenceSession(proto.SerializeToString())
    (wanted,) = session.run(None, given)
    model = ir.from_onnx(proto.SerializeToString())
    for found in (ir.run(model, [*given.values()]), ir.compile(model)([*given.values()])):
        (ours,) = found.values()
        assert ours.shape == wanted.shape
        np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=2e-5)


def resize(x: np.ndarray, target: np.ndarray, **attributes: Any) -> Any:
    """A Resize to sizes, or by scales."""
    inputs = (
        [x, np.zeros(0, "f4"), target]
        if target.dtype == "f4"
        else [x, *[np.zeros(0, "f4")] * 2, target]
    )
    proto = one_node("Resize", 19, inputs, **attributes)
    node = proto.graph.node[0]
    for index in range(1, len(node.input) - 1):
        node.input[index] = ""
    kept = [row for row in proto.graph.input if row.name in node.input]
    del proto.graph.input[:]
    proto.graph.input.extend(kept)
    return fixed(proto, **{node.input[len(node.input) - 1]: target})


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize(
    ("mode", "words"),
    [("linear", {"antialias": 1}), ("linear", {"antialias": 1, "exclude_outside": 1}),
     ("cubic", {"antialias": 1}), ("cubic", {"antialias": 1, "exclude_outside": 1}),
     ("cubic", {"exclude_outside": 1, "cubic_coeff_a": -0.5})],
)  # fmt: skip
@pytest.mark.parametrize(
    "target",
    [np.array([2, 3, 4, 5]), np.array([2, 3, 11, 1]), np.array([2, 3, 9, 5]),
     np.array([1, 1, 0.5, 1.3], "f4"), np.array([1, 1, 0.35, 0.6], "f4")],
)  # fmt: skip
def test_neighbours_that_count_for_other_shares(
    word: str, mode: str, words: dict[str, Any], target: np.ndarray
) -> None:
    x = RNG.standard_normal((2, 3, 9, 7)).astype("f4")
    proto = resize(x, target, mode=mode, coordinate_transformation_mode=word, **words)
    same(proto, x0=x)


def test_other_axes_shrink_too() -> None:
    x = RNG.standard_normal((6, 5, 2)).astype("f4")
    proto = resize(x, np.array([3, 2, 2]), mode="linear", antialias=1)
    model = ir.from_onnx(proto.SerializeToString())
    (found,) = ir.run(model, [x]).values()
    (wanted,) = reference.ReferenceEvaluator(proto).run(None, {"x0": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_sizes_that_are_not_known_are_named() -> None:
    x = np.zeros((1, 1, 8, 8), "f4")
    proto = resize(x, np.array([1, 1, 4, 4]), mode="linear", antialias=1)
    proto.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"
    with pytest.raises(UnsupportedError, match="axis 2 of the input"):
        ir.from_onnx(proto.SerializeToString())


def test_whole_numbers_are_not_weighed() -> None:
    proto = resize(
        np.zeros((1, 1, 8, 8), "u1"), np.array([1, 1, 4, 4]), mode="linear", antialias=1
    )
    with pytest.raises(UnsupportedError, match="of u8 they would have to be rounded"):
        ir.from_onnx(proto.SerializeToString())


def test_sizes_beyond_all_memory_are_refused() -> None:
    sizes, x = np.array([1, 1, 4, 1 << 44]), np.zeros((1, 1, 8, 8), "f4")
    proto = resize(x, sizes, mode="linear", antialias=1)
    with pytest.raises(ir.IRError, match="not enough memory"):
        ir.from_onnx(proto.SerializeToString())


def test_an_axis_may_become_empty() -> None:
    x = np.zeros((1, 1, 8, 8), "f4")
    proto = resize(x, np.array([1, 1, 3, 0]), mode="linear", antialias=1)
    assert ir.run(ir.from_onnx(proto.SerializeToString()), [x])["y0"].shape == (1, 1, 3, 0)


@pytest.mark.parametrize("words", [{"antialias": 1}, {"exclude_outside": 1}])
def test_many_places_are_weighed_at_once(words: dict[str, Any]) -> None:
    x = RNG.standard_normal((1, 1, 2, 4)).astype("f4")
    proto = resize(x, np.array([1, 1, 2, 1_000_000]), mode="cubic", **words).SerializeToString()
    began = time.process_time()
    model = ir.from_onnx(proto)
    assert time.process_time() - began < 5
    (found,) = ir.run(model, [x]).values()
    (wanted,) = runtime.InferenceSession(proto).run(None, {"x0": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("size", [(1, 2, 3, 4), (3, 1, 1, 2), (1, 1, 1, 1), (2, 2, 2, 3, 4)])
def test_grids_of_affine_places(size: tuple[int, ...], corners: int, constant: bool) -> None:
    axes = len(size) - 2
    theta, sizes = RNG.standard_normal((size[0], axes, axes + 1)).astype("f4"), np.array(size)
    proto = one_node("AffineGrid", 20, [theta, sizes], align_corners=corners)
    given = {"x0": theta} if constant else {"x0": theta, "x1": sizes}
    same(fixed(proto, x1=sizes) if constant else proto, **given)


SHAPES = [((5, 7), (6, 20)), ((9, 4), (3, 30)), ((12, 9), (30, 7)), ((10, 40), (11, 41)),
          ((2, 11), (19, 13)), ((3, 1), (1, 9))]  # fmt: skip


@pytest.mark.parametrize("open_axes", [False, True])
@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("word", ["half_pixel", "asymmetric", "align_corners"])
def test_one_scale_says_where_pixels_lie(
    word: str, mode: str, policy: str, open_axes: bool
) -> None:
    words = {"mode": mode, "coordinate_transformation_mode": word}
    for (height, width), target in SHAPES:
        x = RNG.standard_normal((1, 2, height, width)).astype("f4")
        proto = resize(x, np.array(target), axes=[2, 3], keep_aspect_ratio_policy=policy, **words)
        if open_axes:
            for axis in (2, 3):
                dim = proto.graph.input[0].type.tensor_type.shape.dim[axis]
                dim.dim_param = f"open{axis}"
        same(proto, x0=x)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("word", ["half_pixel_symmetric", "pytorch_half_pixel"])
@pytest.mark.parametrize("wide", [{}, {"antialias": 1}])
def test_one_scale_with_weights_of_its_own(wide: Any, word: str, policy: str) -> None:
    words = {"mode": "linear", "coordinate_transformation_mode": word, **wide}
    # The fourth keeps a size, which ONNX Runtime does not resample where it smooths.
    for (height, width), target in SHAPES[:3]:
        x = RNG.standard_normal((1, 2, height, width)).astype("f4")
        same(resize(x, np.array(target), axes=[2, 3], keep_aspect_ratio_policy=policy, **words),
             x0=x)  # fmt: skip


def test_a_scaled_image_in_openvino() -> None:
    ov = pytest.importorskip("openvino")
    x = RNG.standard_normal((1, 2, 5, 7)).astype("f4")
    words = {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger", "mode": "linear"}
    proto = resize(x, np.array([6, 20]), **words)
    xml, weights = ir.dumps(ir.from_onnx(proto.SerializeToString()))
    loaded = ov.Core().read_model(xml, ov.Tensor(np.frombuffer(weights or b"\0", np.uint8)))
    (found,) = (
        ov.Core().compile_model(loaded, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x).values()
    )
    (wanted,) = runtime.InferenceSession(proto.SerializeToString()).run(None, {"x0": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
