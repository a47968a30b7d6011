# SPDX-License-Identifier: Apache-2.0
"""Types of command-line arguments: argparse shows what they refuse in one line, before anything is started."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    """Return a whole number of 1 or more."""
    return _whole(text, 1)


def not_negative(text: str) -> int:
    """Return a whole number of 0 or more."""
    return _whole(text, 0)


def watched_seconds(text: str) -> float:
    """Return a time of 0.5 to 60 s."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.5 <= number <= 60:
        raise argparse.ArgumentTypeError(f'"{text}" is no number of seconds from 0.5 to 60')
    return number


def _whole(text: str, smallest: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = smallest - 1
    if number < smallest:
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number of at least {smallest}')
    return number
