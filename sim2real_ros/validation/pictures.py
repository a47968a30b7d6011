# SPDX-License-Identifier: Apache-2.0
"""An episode to look at: in MuJoCo's window, or drawn into an animated GIF on a machine without a screen."""

from __future__ import annotations

import os
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from sim2real_ros.errors import DependencyError, OutputError
from sim2real_ros.rotations import wxyz_from_xyzw
from sim2real_ros.sim.ground import Plane
from sim2real_ros.sim.model import FLOOR, build_model, import_mujoco
from sim2real_ros.validation.controls import Controls
from sim2real_ros.validation.episodes import Trial
from sim2real_ros.validation.plant import BASE, Plant, ground_of

if TYPE_CHECKING:
    import mujoco

FRAME_S = 0.05
SIZE = (640, 360)  # pixels
AZIMUTH, ELEVATION, DISTANCE = 140, -20, 2.0  # deg, deg, m
GROUND, AMBIENT, DIFFUSE = (0.62, 0.66, 0.7, 1.0), 0.45, 0.5  # looks alone
NO_GL = 'cannot draw without a screen here ({}): set MUJOCO_GL=egl or MUJOCO_GL=osmesa, whichever is installed'


class Scene(ABC):
    """A model with the episode's state in it, brought up to date at every policy tick; a `watch` of `episodes.run`."""

    def __init__(self, trial: Trial, scenario: str) -> None:
        """Build the model of a scenario."""
        self._ground = ground_of(trial.level.scenarios[scenario])
        self.model: mujoco.MjModel = build_model(trial.robot, ground=self._ground)
        floor = self.model.geom(FLOOR).id
        if not isinstance(self._ground, Plane):  # its own squares show that a plane passes by
            self.model.geom_matid[floor], self.model.geom_rgba[floor] = -1, GROUND
        self.model.vis.headlight.ambient[:], self.model.vis.headlight.diffuse[:] = AMBIENT, DIFFUSE
        self.data: mujoco.MjData = import_mujoco().MjData(self.model)

    def __call__(self, now: float, plant: Plant, controls: Controls, command: np.ndarray) -> None:
        """Show the state after a policy tick."""
        if isinstance(self._ground, Plane):
            self.model.geom_quat[self.model.geom(FLOOR).id] = wxyz_from_xyzw(plant.ground_quat_xyzw)[0]
        self.data.qpos, self.data.time = plant.qpos[0], now
        import_mujoco().mj_forward(self.model, self.data)
        self.show(now)

    @abstractmethod
    def show(self, now: float) -> None:
        """Draw; `now` in s."""

    def __enter__(self) -> Scene:
        return self


class Window(Scene):
    """MuJoCo's viewer, in real time."""

    def __init__(self, trial: Trial, scenario: str) -> None:
        """Open it.

        Raises:
            DependencyError: there is no screen.
        """
        if sys.platform.startswith('linux') and not (os.environ.get('DISPLAY') or os.environ.get('WAYLAND_DISPLAY')):
            raise DependencyError('--view: there is no display here (DISPLAY is unset); --video FILE draws without one')
        super().__init__(trial, scenario)
        import mujoco.viewer  # noqa: PLC0415 - needs a display

        self._handle = mujoco.viewer.launch_passive(self.model, self.data, show_left_ui=False, show_right_ui=False)
        self._begin: float | None = None

    def show(self, now: float) -> None:
        """Draw, not before its time."""
        self._begin = time.monotonic() - now if self._begin is None else self._begin
        time.sleep(max(0.0, self._begin + now - time.monotonic()))
        if self._handle.is_running():
            self._handle.sync()

    def __exit__(self, *exception: object) -> None:
        self._handle.close()


class Film(Scene):
    """An animated GIF, in real time."""

    def __init__(self, trial: Trial, scenario: str, path: Path) -> None:
        """Begin.

        Args:
            trial: of the episode.
            scenario: of the episode.
            path: where the animation is written at the end.

        Raises:
            OutputError: another format than GIF is asked for.
            DependencyError: nothing here can draw, or Pillow is not installed.
        """
        if path.suffix.lower() != '.gif':
            raise OutputError(f'--video: {path.name} is no .gif; ffmpeg makes an MP4 of one: ffmpeg -i episode.gif episode.mp4')
        super().__init__(trial, scenario)
        self._path, self._frames, self._next = path, list[Any](), 0.0
        try:
            from PIL import Image  # noqa: PLC0415 - optional
        except ImportError as error:
            raise DependencyError(f'--video needs Pillow ({error}): pip install "sim2real_ros[validate]"') from None
        self._image, mujoco = Image, import_mujoco()
        self.model.vis.global_.offwidth, self.model.vis.global_.offheight = SIZE
        try:
            self._renderer = mujoco.Renderer(self.model, SIZE[1], SIZE[0])
        except Exception as error:  # each of the ways to draw has errors of its own
            raise DependencyError(NO_GL.format(error)) from None
        self._camera = mujoco.MjvCamera()
        self._camera.azimuth, self._camera.elevation, self._camera.distance = AZIMUTH, ELEVATION, DISTANCE

    def show(self, now: float) -> None:
        """Draw when a frame is due."""
        if now < self._next:
            return
        self._next += FRAME_S
        self._camera.lookat[:] = self.data.xpos[BASE]
        self._renderer.update_scene(self.data, self._camera)
        self._frames.append(self._image.fromarray(self._renderer.render()).quantize(64))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._renderer.close()
        if kind is None and self._frames:
            first, *rest = self._frames
            try:
                first.save(self._path, save_all=True, append_images=rest, duration=round(1e3 * FRAME_S), loop=0)
            except OSError as problem:
                raise OutputError(f'cannot write the animation {self._path}: {problem.strerror}') from None
