# SPDX-License-Identifier: Apache-2.0
"""Fixtures of every test; makers of files are plain functions in `makers.py`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from makers import REPOSITORY

# nodes that a test starts must not hear those of a test beside it
os.environ.setdefault('ROS_DOMAIN_ID', str(20 + int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0')[2:])))

COMMON = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile('sim2real', COMMON, max_examples=50)
settings.register_profile('nightly', COMMON, max_examples=100_000)  # make nightly
settings.load_profile(os.environ.get('HYPOTHESIS_PROFILE', 'sim2real'))


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
