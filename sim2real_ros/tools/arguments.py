# SPDX-License-Identifier: Apache-2.0
"""Types of command-line arguments: argparse shows what they refuse in one line, before anything is started."""

from __future__ import annotations

import argparse
import re


def positive(text: str) -> int:
    """Return a whole number of 1 or more."""
    return _whole(text, 1)


def not_negative(text: str) -> int:
    """Return a whole number of 0 or more."""
    return _whole(text, 0)


def watched_seconds(text: str) -> float:
    """Return a time of 0.5 to 60 s."""
    return _number(text, 0.5, 60, 'seconds')


def milliseconds(text: str) -> float:
    """Return a time of 0 to 1000 ms."""
    return _number(text, 0, 1000, 'milliseconds')


def _number(text: str, low: float, high: float, unit: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not low <= number <= high:
        raise argparse.ArgumentTypeError(f'"{text}" is no number of {unit} from {low:g} to {high:g}')
    return number


def _whole(text: str, smallest: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = smallest - 1
    if number < smallest:
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number of at least {smallest}')
    return number


def namespace(text: str) -> str:
    """Return a ROS namespace without the slashes around it."""
    if not re.fullmatch(r'/?([A-Za-z_]\w*(/[A-Za-z_]\w*)*/?)?', text, re.ASCII):
        raise argparse.ArgumentTypeError(
            f'"{text}" is no namespace: letters, digits and underscores are possible, no digit first'
        )
    return text.strip('/')


def remapping(text: str) -> tuple[str, str]:
    """Return both sides of a ROS remapping `name:=topic`."""
    name, sign, topic = text.partition(':=')
    if not (name and sign and topic):
        raise argparse.ArgumentTypeError(f'"{text}" is no remapping; NAME:=TOPIC is expected')
    return name, topic
