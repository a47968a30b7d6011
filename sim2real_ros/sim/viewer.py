# SPDX-License-Identifier: Apache-2.0
"""MuJoCo's own viewer beside the simulation, where a display exists."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from sim2real_ros.sim.world import World

FRAME_S = 1 / 60


class Viewer:
    """A passive viewer, refreshed 60 times per simulated second."""

    def __init__(self, world: World, handle: object) -> None:
        self._world, self._handle, self._next = world, handle, 0.0

    def update(self) -> None:
        """Show the newest state when a frame is due."""
        if self._world.time >= self._next and self._handle.is_running():  # type: ignore[attr-defined]
            self._handle.sync()  # type: ignore[attr-defined]
            self._next = self._world.time + FRAME_S

    def close(self) -> None:
        """Close the window."""
        self._handle.close()  # type: ignore[attr-defined]


def open_viewer(world: World, warn: Callable[[str], object]) -> Viewer | None:
    """Open a viewer; without a display say so and go on without."""
    if sys.platform.startswith('linux') and not (os.environ.get('DISPLAY') or os.environ.get('WAYLAND_DISPLAY')):
        warn('no display (DISPLAY and WAYLAND_DISPLAY are unset): running without a viewer')
        return None
    import mujoco.viewer  # noqa: PLC0415 - needs a display

    return Viewer(world, mujoco.viewer.launch_passive(world.model, world.data, show_left_ui=False, show_right_ui=False))
