"""A part of the tests is some cases of each table: what .ci/run takes with other dependencies."""

from __future__ import annotations

from itertools import product

from conftest import in_part

TABLES = {
    "test_a.py::test_wide": [f"[{row}-{column}]" for row, column in product(range(60), range(4))],
    "test_a.py::test_short": ["[made]", "[shared]"],
    "test_b.py::test_wide": [""],
}
NAMES = [table + case for table, cases in TABLES.items() for case in cases]


def taken(part: str) -> set[str]:
    return {name for name, is_in in zip(NAMES, in_part(NAMES, part), strict=True) if is_in}


def test_all_parts_are_all_tests_and_none_is_most() -> None:
    parts = [taken(f"{number}/4") for number in range(1, 5)]
    assert set().union(*parts) == set(NAMES) == taken("1/1")
    assert all(len(part) < len(NAMES) / 2 for part in parts)


def test_no_part_leaves_a_test_or_a_column_out() -> None:
    for number in range(1, 5):
        cases = [name.partition("[")[::2] for name in taken(f"{number}/4")]
        assert {table for table, _ in cases} == TABLES.keys()
        assert len({case.partition("-")[2] for table, case in cases if "-" in case}) == 4
