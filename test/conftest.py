# SPDX-License-Identifier: Apache-2.0
"""Fixtures of every test; makers of files are plain functions in `makers.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from makers import REPOSITORY

settings.register_profile(
    'sim2real', deadline=None, max_examples=50, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile('sim2real')


@pytest.fixture(scope='session')
def shared() -> Path:
    """The folder `shared/` beside the repository; tests that need it are skipped where it is absent."""
    folder = REPOSITORY.parent / 'shared'
    if not folder.is_dir():
        pytest.skip('there is no folder shared/ beside the repository')
    return folder


@pytest.fixture(scope='session')
def third_party(shared: Path) -> Path:
    """Public policies of others; tests that need them are skipped where they are absent."""
    folder = shared / 'third_party'
    if not folder.is_dir():
        pytest.skip('there is no folder shared/third_party beside the repository')
    return folder
