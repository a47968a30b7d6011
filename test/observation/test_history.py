# SPDX-License-Identifier: Apache-2.0
"""History equals a naive list of frames, whatever the widths, lags, layout and fill."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim2real_ros.observation.history import History, gather_index

WIDTHS = st.lists(st.integers(1, 4), min_size=1, max_size=4)
LAGS = st.lists(st.integers(0, 7), min_size=1, max_size=5, unique=True)
LAYOUT = st.sampled_from(['term_major', 'frame_major'])
FILL = st.sampled_from(['first', 'zeros'])


def history_of(widths, lags, layout, fill, batch):
    """Return the history of an input of one block whose terms share their lags."""
    index = gather_index(widths, [lags] * len(widths), layout)
    return History(index, np.full(sum(widths), fill == 'first'), batch)


class NaiveHistory:
    """One robot's history as a list of all its frames since the reset."""

    def __init__(self, widths, lags, layout, fill):
        self.widths, self.lags, self.layout, self.fill, self.frames = widths, lags, layout, fill, []

    def push(self, frame):
        self.frames.append(list(frame))
        past = []
        for lag in self.lags:
            if lag < len(self.frames):
                past.append(self.frames[-1 - lag])
            else:
                past.append(self.frames[0] if self.fill == 'first' else [0.0] * sum(self.widths))
        if self.layout == 'frame_major':
            return [number for old in past for number in old]
        out, start = [], 0
        for width in self.widths:
            for old in past:
                out += old[start : start + width]
            start += width
        return out


@given(widths=WIDTHS, lags=LAGS, layout=LAYOUT, fill=FILL, ticks=st.integers(1, 12), reset_at=st.integers(0, 12))
def test_history_equals_a_naive_list(widths, lags, layout, fill, ticks, reset_at):
    history, naive = history_of(widths, lags, layout, fill, ()), NaiveHistory(widths, lags, layout, fill)
    rng = np.random.default_rng(1)
    for tick in range(ticks):
        if tick == reset_at:
            history.reset()
            naive.frames.clear()
        frame = rng.normal(size=sum(widths))
        assert history.push(frame).tolist() == naive.push(frame)


@given(
    widths=WIDTHS,
    lags=LAGS,
    layout=LAYOUT,
    fill=FILL,
    masks=st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=10),
)
def test_every_robot_of_a_batch_has_a_history_and_a_reset_of_its_own(widths, lags, layout, fill, masks):
    history = history_of(widths, lags, layout, fill, (3,))
    naive = [NaiveHistory(widths, lags, layout, fill) for _ in range(3)]
    rng = np.random.default_rng(2)
    for mask in masks:
        history.reset(np.array(mask))
        for robot in np.flatnonzero(mask):
            naive[robot].frames.clear()
        frames = rng.normal(size=(3, sum(widths)))
        assert history.push(frames).tolist() == [one.push(frame) for one, frame in zip(naive, frames, strict=True)]


@given(widths=WIDTHS, lags=LAGS, layout=LAYOUT, fill=FILL)
def test_batch_of_one_equals_scalar_bit_for_bit(widths, lags, layout, fill):
    scalar, batch = history_of(widths, lags, layout, fill, ()), history_of(widths, lags, layout, fill, (1, 1))
    rng = np.random.default_rng(3)
    for tick in range(10):
        if tick == 5:
            scalar.reset(np.array(True))
            batch.reset(np.array([[True]]))
        frame = rng.normal(size=sum(widths))
        assert np.array_equal(batch.push(frame[None, None])[0, 0], scalar.push(frame))


@given(widths=WIDTHS, lags=LAGS, layout=LAYOUT)
def test_every_output_number_comes_from_another_place(widths, lags, layout):
    index = gather_index(widths, [lags] * len(widths), layout)
    assert len(set(index.tolist())) == len(index) == sum(widths) * len(lags)


@pytest.mark.parametrize(
    ('layout', 'first', 'third'),
    [
        ('term_major', [1, 2, 1, 2, 3, 3], [7, 8, 4, 5, 9, 6]),
        ('frame_major', [1, 2, 3, 1, 2, 3], [7, 8, 9, 4, 5, 6]),
    ],
)
def test_layouts_are_those_of_the_documented_example(layout, first, third):
    history = history_of([2, 1], [0, 1], layout, 'first', ())
    assert history.push(np.array([1.0, 2, 3])).tolist() == first
    history.push(np.array([4.0, 5, 6]))
    assert history.push(np.array([7.0, 8, 9])).tolist() == third


def test_oldest_first_lags_give_oldest_first():
    history = history_of([1], [2, 1, 0], 'term_major', 'zeros', ())
    assert [history.push(np.array([float(k)])).tolist() for k in (1, 2, 3, 4)] == [[0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4]]


def test_history_keeps_no_reference_to_the_frame_or_the_result():
    history, frame = history_of([2], [0, 1], 'frame_major', 'first', ()), np.array([1.0, 2.0])
    out = history.push(frame)
    frame[:], out[:] = 9.0, 9.0
    assert history.push(np.array([3.0, 4.0])).tolist() == [3, 4, 1, 2]


def test_terms_may_have_lags_of_their_own():
    index = gather_index([2, 1], [[0], [2, 0]], 'term_major')
    history = History(index, np.array([True, True, False]), ())
    assert history.push(np.array([1.0, 2, 3])).tolist() == [1, 2, 0, 3]
    history.push(np.array([4.0, 5, 6]))
    assert history.push(np.array([7.0, 8, 9])).tolist() == [7, 8, 3, 9]


@given(widths=WIDTHS, lags=LAGS, layout=LAYOUT, fills=st.tuples(FILL, FILL), ticks=st.integers(1, 10))
def test_blocks_share_one_ring_and_keep_their_own_layout_and_fill(widths, lags, layout, fills, ticks):
    """Two blocks side by side equal two histories of their own."""
    frame, other = sum(widths), {'term_major': 'frame_major', 'frame_major': 'term_major'}[layout]
    parts = [
        gather_index(widths, [lags] * len(widths), layout, 0, 2 * frame),
        gather_index(widths, [lags[::-1]] * len(widths), other, frame, 2 * frame),
    ]
    both = History(np.concatenate(parts), np.repeat([fill == 'first' for fill in fills], frame), ())
    alone = history_of(widths, lags, layout, fills[0], ()), history_of(widths, lags[::-1], other, fills[1], ())
    rng = np.random.default_rng(4)
    for _ in range(ticks):
        frames = rng.normal(size=(2, frame))
        expected = [one.push(values) for one, values in zip(alone, frames, strict=True)]
        assert np.array_equal(both.push(frames.ravel()), np.concatenate(expected))
