# SPDX-License-Identifier: Apache-2.0
"""Promises of reading archives: arrays of numbers, or a ValueError with a reason."""

import io
import zipfile

import numpy as np
import pytest

from sim2real_ros import npz
from sim2real_ros.npz import numbers, read_npz


def packed(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def declared(shape, size=64):
    """Return an archive whose array says that it has a shape, and has `size` bytes."""
    header, buffer = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {'descr': '<f8', 'fortran_order': False, 'shape': shape})
    with zipfile.ZipFile(buffer, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('a.npy', header.getvalue() + bytes(size))
    return buffer.getvalue()


def test_arrays_come_back_as_they_were_saved():
    data = read_npz(packed(a=np.arange(3), b=np.eye(2)))
    assert data['a'].tolist() == [0, 1, 2]
    assert (numbers(data, 'b') == np.eye(2)).all()


@pytest.mark.parametrize(
    ('content', 'reason'),
    [
        (b'', 'is no npz archive'),
        (b'version https://git-lfs.github.com/spec/v1', 'is no npz archive'),
        (packed(a=np.eye(2))[:-30], 'is no npz archive'),
        (packed(a=np.array([{}, None])), 'Python objects'),
        (declared((10**15,)), 'larger than the memory'),
        (declared((100,)), 'a.npy|EOF|cannot|read'),
    ],
    ids=['empty', 'pointer', 'cut short', 'objects', 'shape of a memory', 'fewer bytes than its shape'],
)
def test_what_is_no_archive_of_numbers_is_refused_with_the_reason(content, reason):
    with pytest.raises(ValueError, match=reason):
        read_npz(content)


def test_an_archive_that_inflates_beyond_the_limit_is_refused_before_it_does(monkeypatch):
    monkeypatch.setattr(npz, 'MAX_BYTES', 1 << 20)
    with pytest.raises(ValueError, match='it unpacks to 2 MiB, at most 1 MiB are read'):
        read_npz(declared((1 << 18,), 1 << 21))


def test_rotten_bytes_are_noticed():
    data = bytearray(packed(a=np.random.default_rng(0).normal(size=1000)))
    data[4000] ^= 0xFF
    with pytest.raises(ValueError, match='damaged'):
        read_npz(bytes(data))


@pytest.mark.parametrize('array', [np.array(['1.0']), np.array([1j]), np.array([True])])
def test_other_things_than_real_numbers_are_refused_by_name(array):
    with pytest.raises(ValueError, match='a is of type'):
        numbers({'a': array}, 'a')
    with pytest.raises(ValueError, match='there is no b'):
        numbers({'a': array}, 'b')
