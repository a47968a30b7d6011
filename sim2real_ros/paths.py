# SPDX-License-Identifier: Apache-2.0
"""Where the package's own data (config, policies, urdf, launch) lies: source checkout, `pip install` or colcon.

The ROS wheels from PyPI do not set AMENT_PREFIX_PATH, so the ament index is the last place to ask, not the first.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import tempfile
from pathlib import Path

from sim2real_ros.errors import NotFoundError, OutputError

PACKAGE = 'sim2real_ros'


def share_directory() -> Path:
    """Return the folder that holds config/, policies/, urdf/ and launch/.

    Raises:
        NotFoundError: the package is installed without its data.
    """
    module = Path(__file__).resolve()
    # <prefix>/lib/python3.x/site-packages/sim2real_ros/paths.py: the prefix is where share/ is, with venv and colcon alike
    candidates = [module.parents[1]]
    candidates += [parent / 'share' / PACKAGE for parent in module.parents[2:6]]
    candidates += [Path(sys.prefix) / 'share' / PACKAGE]
    candidates += [
        Path(prefix) / 'share' / PACKAGE for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if prefix
    ]
    for candidate in candidates:
        if (candidate / 'config' / 'robots').is_dir() and (candidate / 'urdf').is_dir():
            return candidate
    raise NotFoundError(
        f'the data files of {PACKAGE} (config/, urdf/, policies/) are not beside the package; looked in '
        f'{", ".join(str(c) for c in candidates)}. Install it again with pip or colcon.'
    )


def find_robot(robot: str) -> Path:
    """Return the robot file of a shipped robot name (`go2`) or of a path to a YAML file."""
    return _find(robot, share_directory() / 'config' / 'robots', '{}.yaml', 'robot')


def find_world(world: str) -> Path:
    """Return the SDF file of a shipped world of Gazebo (`flat`) or of a path."""
    return _find(world, share_directory() / 'config' / 'gazebo', '{}.sdf', 'world')


def find_policy(policy: str) -> Path:
    """Return the file of a shipped policy name (`go2_velocity`), a policy folder, a .yaml or an .onnx file."""
    path = _find(policy, share_directory() / 'policies', '{}', 'policy')
    if not path.is_dir():
        return path
    for candidate in (path / 'policy.yaml', path / 'policy.onnx'):
        if candidate.is_file():
            return candidate
    raise NotFoundError(f'policy folder {path} holds neither policy.yaml nor policy.onnx')


def read_file(path: Path) -> bytes:
    """Return the bytes of a regular file; a device would never end, a pipe would keep us waiting.

    Raises:
        OSError: it cannot be read; `strerror` says why.
    """
    if '\0' in str(path):
        raise OSError(errno.EINVAL, 'a null character in a file name')
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, 'rb') as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, 'it is no regular file')
        return file.read()


def writable_file(path: Path, option: str) -> Path:
    """Return the path of a file to be written, its folder made: a long run must not end in an error about its result.

    Raises:
        OutputError: it cannot be written; the message names the option that gave it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        with path.open('ab'):
            pass
        if new:
            path.unlink()
    except OSError as error:
        raise OutputError(f'{option}: cannot write the file {path}: {error.strerror}') from None
    return path


def write_text(path: Path, text: str, option: str) -> None:
    """Write the text that a run ends with; raises OutputError as `writable_file` does, which was asked before it.

    Since then the disk may have filled; a folder that somebody removed is made again.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding='utf-8')
    except OSError as error:
        raise OutputError(f'{option}: cannot write the file {path}: {error.strerror}') from None


def writable_folder(path: Path, option: str) -> Path:
    """Make a folder to write into and return it; raises OutputError as `writable_file` does."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        reason = 'a file of this name is there' if path.is_file() else error.strerror
        raise OutputError(f'{option}: cannot write into the folder {path}: {reason}') from None
    return path


def _find(name: str, folder: Path, pattern: str, kind: str) -> Path:
    if not name:
        raise NotFoundError(f'no {kind} given; shipped: {_names(folder)}')
    try:
        for candidate in (Path(name).expanduser(), folder / pattern.format(name)):
            if candidate.is_file() or candidate.is_dir():
                return candidate.resolve()
    except (OSError, RuntimeError, ValueError):
        pass  # too long, of an unknown user, with a zero byte: not a path
    name = name if len(name) < 200 else f'{name[:200]}...'
    raise NotFoundError(f'{kind} "{name}" is neither a path nor one of the shipped ones: {_names(folder)}')


def _names(folder: Path) -> str:
    return ', '.join(sorted(p.stem for p in folder.iterdir() if not p.name.startswith('.'))) if folder.is_dir() else 'none'
