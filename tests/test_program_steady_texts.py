"""Texts of as many words again and again, which have a quicker plan than those of any length."""

from __future__ import annotations

import pytest
from test_program import assert_close
from test_program_texts import few as few
from test_program_texts import fitting as fitting
from test_program_texts import given_words, plans_of, text
from vinoir import ir
from vinoir.ir.engine import patterns
from vinoir.ir.engine.patterns import takes_texts


@pytest.mark.usefixtures("few")
def test_as_many_words_again_and_again_have_a_plan_of_their_own() -> None:
    model = text()
    program = ir.compile(model)
    for count in (5, 9, 7, *[12] * (patterns.STEADY_TEXTS - 1), 8, *[11] * 30, 12):
        assert_close(program(given_words(count)), ir.run(model, given_words(count)))
    sizes = [pattern[0] for pattern, _ in plans_of(program)]
    assert (1, 11) in sizes
    # Not those that came less often in a row, or now and then.
    assert not {(1, 12), (1, 8)} & {size for size in sizes if size is not None}


@pytest.mark.parametrize("fewer", [0, 2])
@pytest.mark.usefixtures("few", "fitting")
def test_steps_of_as_many_words_have_a_plan_that_holds_as_the_text_grows(fewer: int) -> None:
    """Several words are guessed at a time, of which some are dropped again."""
    model = text(kept=True)
    program, wanted = ir.compile(model, threads=2), ir.compile(model, exact=True)
    for count in (5, 9, 7):
        program.reset()
        program(given_words(count, beam=True))
    wanted.reset()
    wanted(given_words(count, beam=True))
    before, made = count, []
    for _ in range(patterns.STEADY_TEXTS + 6):
        arrays = given_words(4, before, beam=True)
        assert_close(program(arrays), wanted(arrays))
        before += 4 - fewer
        for one in (program, wanted):
            for name, value in list(one.state.items()):
                one.state[name] = value[:, :, :before]
        made.append(len(program._plans))
    steps = [pattern for pattern, _ in plans_of(program) if pattern[0] == (1, 4)]
    (step,) = steps
    assert step[1] == (1, 1, 4, patterns.OPEN)
    assert all(shape is not None and patterns.OPEN in shape for shape in step[3:])
    assert made[-1] == made[patterns.STEADY_TEXTS]  # none is made for a length of what was seen


@pytest.mark.usefixtures("few", "fitting")
def test_texts_that_are_longer_each_time_are_not_as_long() -> None:
    program = ir.compile(text(kept=True), threads=2)
    for count in (5, 9, 7):
        program.reset()
        program(given_words(count, beam=True))
    before = count
    for count in range(2, 2 * patterns.STEADY_TEXTS + 4):
        program(given_words(count, before, beam=True))
        before += count
        held = [pattern for pattern, _ in plans_of(program) if pattern[3] is not None]
        assert [takes_texts(pattern) for pattern in held] == [True]
