"""Functions of one number, element by element.

Specification pages: Abs-1, Acos-1, Acosh-3, Asin-1, Asinh-3, Atan-1, Atanh-3, Ceiling-1, Cos-1,
Cosh-1, Erf-1, ErfInv-17, Floor-1, Log-1, Negative-1, Round-5, Sign-1, Sin-1, Sinh-1, Sqrt-1,
Tan-1, Tanh-1.

NaN and infinity are NumPy's. Functions with a fraction give integers the nearest value, as
OpenVINO's CPU does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ..schemas import Array
from ..schemas.tensor import Bounds
from .elementwise import (
    ANYTHING,
    REAL,
    RealUnary,
    Unary,
    erf,
    polynomial,
)
from .value_bounds import largest, without


class AbsV1(Unary):
    """The distance from zero."""

    carries_sizes = True

    def of(self, x: Array) -> Array:
        return np.abs(x)

    def bounds(self, lows: Sequence[Array], highs: Sequence[Array]) -> Sequence[Bounds] | None:
        ends = self.distance(lows[0]), self.distance(highs[0])
        meets_zero = (lows[0] < 0) & (highs[0] > 0)
        return [(without(np.minimum(*ends), meets_zero, 0), np.maximum(*ends))]

    def distance(self, limit: Array) -> Array:
        """That of a limit; the least of signed integers has none of its own."""
        (found,) = self.run(limit)
        return without(found, found < 0, largest(found.dtype))

    def carry_sizes(self, data: Array) -> Sequence[Array | None] | None:
        return None


class NegativeV1(Unary):
    """The number on the other side of zero."""

    def of(self, x: Array) -> Array:
        return np.negative(x)


class SignV1(Unary):
    """-1, 0 or 1; NaN stays."""

    def of(self, x: Array) -> Array:
        return np.sign(x)


class FloorV1(Unary):
    """The greatest whole number that is not above."""

    def of(self, x: Array) -> Array:
        return np.floor(x)


class CeilingV1(Unary):
    """The least whole number that is not below."""

    def of(self, x: Array) -> Array:
        return np.ceil(x)


class RoundV5(Unary):
    """The nearest whole number."""

    allowed = ANYTHING

    mode: Literal["half_to_even", "half_away_from_zero"] = "half_to_even"

    def of(self, x: Array) -> Array:
        if x.dtype.kind != "f":
            return x.copy()
        if self.mode == "half_to_even":
            return np.rint(x)
        whole = np.trunc(x)
        return whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(1, x), 0).astype(x.dtype)


class SqrtV1(RealUnary):
    """The square root; NaN below zero."""

    def of(self, x: Array) -> Array:
        return np.sqrt(x)


class LogV1(RealUnary):
    """The natural logarithm."""

    def of(self, x: Array) -> Array:
        return np.log(x)


class ErfV1(RealUnary):
    """The error function."""

    def of(self, x: Array) -> Array:
        return erf(x)


class ErfInvV17(RealUnary):
    """The number whose error function it is; infinite at -1 and 1, NaN beyond."""

    allowed = REAL

    def of(self, x: Array) -> Array:
        return erf_inverse(x.astype(np.float64)).astype(x.dtype)


class SinV1(RealUnary):
    """The sine."""

    def of(self, x: Array) -> Array:
        return np.sin(x)


class CosV1(RealUnary):
    """The cosine."""

    def of(self, x: Array) -> Array:
        return np.cos(x)


class TanV1(RealUnary):
    """The tangent."""

    def of(self, x: Array) -> Array:
        return np.tan(x)


class AsinV1(RealUnary):
    """The inverse of the sine."""

    def of(self, x: Array) -> Array:
        return np.arcsin(x)


class AcosV1(RealUnary):
    """The inverse of the cosine."""

    def of(self, x: Array) -> Array:
        return np.arccos(x)


class AtanV1(RealUnary):
    """The inverse of the tangent."""

    def of(self, x: Array) -> Array:
        return np.arctan(x)


class SinhV1(RealUnary):
    """The hyperbolic sine."""

    def of(self, x: Array) -> Array:
        return np.sinh(x)


class CoshV1(RealUnary):
    """The hyperbolic cosine."""

    def of(self, x: Array) -> Array:
        return np.cosh(x)


class TanhV1(RealUnary):
    """The hyperbolic tangent."""

    def of(self, x: Array) -> Array:
        return np.tanh(x)


class AsinhV3(RealUnary):
    """The inverse of the hyperbolic sine."""

    since = 4

    def of(self, x: Array) -> Array:
        return np.arcsinh(x)


class AcoshV3(RealUnary):
    """The inverse of the hyperbolic cosine."""

    since = 4

    def of(self, x: Array) -> Array:
        return np.arccosh(x)


class AtanhV3(RealUnary):
    """The inverse of the hyperbolic tangent."""

    since = 4

    def of(self, x: Array) -> Array:
        return np.arctanh(x)


# erf_inverse(x) / x as polynomials, fitted by weighted least squares to 3e-9: in
# w - 2.5 where w = -log(1 - x**2) is below 5, in sqrt(w) - 3 above, up to the last float32.
_INVERSE_NEAR = (
    1.50140935, 0.246640288, -0.00417733939, -0.00125274468, 0.000218282608, -4.96190145e-06,
    -3.4346005e-06, 4.65889836e-07, 1.80350442e-08, -8.77266033e-09, 3.35683604e-10,
)  # fmt: skip
_INVERSE_FAR = (
    2.8329768, 1.00167524, 0.00944530297, -0.00764276518, 0.00568770045, -0.00356708585,
    0.00147510572, -0.000120056259, -0.000277483335, 0.000160561155, -2.95219588e-05,
)  # fmt: skip


def erf_inverse(x: Array) -> Array:
    """The inverse of the error function, of float64, as exact as float32 needs."""
    distance = -(np.log1p(-x) + np.log1p(x))
    near = polynomial(distance - 2.5, _INVERSE_NEAR)
    far = polynomial(np.sqrt(np.minimum(distance, 16.8)) - 3, _INVERSE_FAR)
    value = x * np.where(distance < 5, near, far)
    return np.where(np.abs(x) == 1, np.copysign(np.inf, x), value)
