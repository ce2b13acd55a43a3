"""Names for unknown sizes, and what arithmetic makes of them.

An expression is a sum of products of atoms with whole coefficients; an atom is a name, or the
floor quotient of an expression by a number. Equal expressions are equal sizes, so that
``H // 2`` met on two ways is seen to be the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import TypeAlias

#: The factors of one product, sorted; the empty product is the constant term.
Product: TypeAlias = "tuple[str, ...]"

#: Letters of the longest expression that is kept. Each squaring doubles one: forty of them, and
#: no memory holds it.
LONGEST = 1000

_WORD = re.compile(r"\w+")


class Expression:
    """A polynomial over named sizes."""

    __slots__ = ("terms",)

    def __init__(self, terms: dict[Product, int]) -> None:
        self.terms = {product: factor for product, factor in terms.items() if factor}

    @classmethod
    def atom(cls, name: str) -> Expression:
        """A name on its own."""
        return cls({(name,): 1})

    @classmethod
    def number(cls, value: int) -> Expression:
        """A constant."""
        return cls({(): value})

    def __add__(self, other: Expression) -> Expression:
        terms = dict(self.terms)
        for product, factor in other.terms.items():
            terms[product] = terms.get(product, 0) + factor
        return Expression(terms)

    @property
    def is_number(self) -> bool:
        """Whether the names have fallen out of it."""
        return self.terms.keys() <= {()}

    @property
    def names(self) -> set[str]:
        """The atoms."""
        return {name for product in self.terms for name in product}

    def value(self, numbers: Mapping[str, int]) -> int:
        """The number that it is where each atom is one."""
        return sum(
            factor * prod(numbers[name] for name in product)
            for product, factor in self.terms.items()
        )

    def if_short(self) -> Expression | None:
        """The expression, None where it is so long that it tells nobody anything."""
        letters = sum(len(name) + 1 for product in self.terms for name in product)
        return self if letters + len(self.terms) <= LONGEST else None

    def __mul__(self, other: Expression) -> Expression:
        terms: dict[Product, int] = {}
        for one, a in self.terms.items():
            for two, b in other.terms.items():
                product = tuple(sorted(one + two))
                terms[product] = terms.get(product, 0) + a * b
        return Expression(terms)

    def floordiv(self, divisor: int) -> Expression:
        """The floor quotient: exact where the divisor divides, else a new atom."""
        whole = {p: f // divisor for p, f in self.terms.items() if f % divisor == 0}
        rest = {p: f for p, f in self.terms.items() if f % divisor}
        if set(rest) <= {()}:
            # floor((d * e + r) / d) = e + floor(r / d)
            constant = rest.get((), 0) // divisor
            return Expression(whole) + Expression.number(constant)
        constant, left = divmod(rest.pop((), 0), divisor)
        inner = Expression(rest | {(): left})
        quotient = Expression.atom(f"{_factor(str(inner))}//{divisor}")
        return Expression(whole) + Expression.number(constant) + quotient

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        text = ""
        for product, factor in sorted(self.terms.items(), key=lambda item: (not item[0], item[0])):
            number = [str(abs(factor))] if abs(factor) != 1 or not product else []
            sign = "-" if factor < 0 else "+" if text else ""
            factors = [*number, *product]
            alone = len(factors) == 1 and factor > 0
            text += sign + (factors[0] if alone else "*".join(map(_factor, factors)))
        return text


def _factor(text: str) -> str:
    """The text of an expression as it stands beside an operator: in brackets, unless a word.

    Atoms are told apart by their texts, and ``4*(B//3)`` is another size than ``(4*B)//3``.
    """
    return text if _WORD.fullmatch(text) else f"({text})"
