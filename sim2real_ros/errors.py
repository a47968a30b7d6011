# SPDX-License-Identifier: Apache-2.0
"""What a user can get wrong, one class per kind of mistake.

Every message says what is wrong, where, and what to do. Command-line tools and nodes print it as it is; a traceback
is for our own mistakes only.
"""

from __future__ import annotations

from collections.abc import Sequence

LONGEST_MESSAGE, LONGEST_FAULT = 8000, 1000  # characters; nobody reads more


class Sim2RealError(Exception):
    """Base of every error that a user can cause and mend."""

    def __str__(self) -> str:
        """Return the message as terminals and ROS strings can take it, whatever the names in it are made of."""
        return ''.join(map(_shown, cut(super().__str__(), LONGEST_MESSAGE)))


def cut(text: str, most: int) -> str:
    """Return a text of at most about `most` characters, which says how much is left out."""
    return text if len(text) <= most else f'{text[:most]} ... ({len(text) - most} characters more)'


def _shown(character: str) -> str:
    """Return a character, or its escape where it is none that can be shown: a control, half of a surrogate pair."""
    shown = character.isprintable() or character == '\n'
    return character if shown else character.encode('unicode_escape', 'surrogatepass').decode('ascii')


class DocumentError(Sim2RealError):
    """A YAML document (robot or contract) has faults; all of them are listed, each with its path in the file.

    Attributes:
        source: the file, as shown to the user.
        faults: one line per fault, `path.in.the.file: what is wrong`.
    """

    def __init__(self, source: str, faults: Sequence[str]) -> None:
        self.source = source
        self.faults = list(faults)
        count = '1 fault' if len(self.faults) == 1 else f'{len(self.faults)} faults'
        super().__init__(f'{source}: {count}\n' + '\n'.join(f'  - {cut(fault, LONGEST_FAULT)}' for fault in self.faults))


class NotFoundError(Sim2RealError):
    """A name (robot, policy, term, file) does not exist; the message lists those that do."""


class JointError(Sim2RealError):
    """Two sets of joint names that must agree do not.

    Attributes:
        missing: names that are needed but not there.
        extra: names that are there but not needed.
        duplicate: names that occur more than once.
    """

    def __init__(
        self, message: str, missing: Sequence[str] = (), extra: Sequence[str] = (), duplicate: Sequence[str] = ()
    ) -> None:
        self.missing, self.extra, self.duplicate = list(missing), list(extra), list(duplicate)
        super().__init__(message)


class ModelFileError(Sim2RealError):
    """The ONNX file cannot be read: missing, truncated, a Git-LFS pointer, without its data file."""


class NetworkError(Sim2RealError):
    """The network does not fit its contract (names, widths, types) or computes non-finite numbers."""


class SignalError(Sim2RealError):
    """A policy needs a signal (IMU, odometry, contacts, goal pose) that the robot does not give."""


class DependencyError(Sim2RealError):
    """An optional package is needed for what was asked; the message says how to install it."""


class OutputError(Sim2RealError):
    """A file or folder cannot be written."""


class ParameterError(Sim2RealError):
    """A ROS parameter or argument of a node has a wrong type, value or form."""


class RunError(Sim2RealError):
    """A process of the running stack failed or did not answer in time."""


class TripFileError(Sim2RealError):
    """A file is not the record of a trip, or only a part of one."""


class RecordingError(Sim2RealError):
    """A recorded run cannot be read, lacks what is needed, or cannot be compared with another one."""


class FormatError(Sim2RealError):
    """The files of another trainer are of no known format, lack what it needs, or do not say one thing."""


class PassportError(Sim2RealError):
    """A policy must not go on this robot: it has no passport, or one that does not fit; the message says which field."""
