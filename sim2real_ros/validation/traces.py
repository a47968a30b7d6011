# SPDX-License-Identifier: Apache-2.0
"""`Trace`: an episode over time, from running it once more: same id, same draws, same robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim2real_ros.rotations import tilt
from sim2real_ros.validation.controls import Controls
from sim2real_ros.validation.episode import Episode, EpisodeId
from sim2real_ros.validation.episodes import Trial, run
from sim2real_ros.validation.plant import Plant


@dataclass(frozen=True, slots=True)
class Trace:
    """What happened, at each policy tick.

    Attributes:
        id: of the episode.
        same: whether it came out as the episode that was asked for, margin and figures bit for bit.
        time_s: (T,) s.
        tilt_rad: (T,) rad.
        height: (T,) of the base above the ground, in shares of standing; 1 for a fixed base.
        velocity: (T, 3) m/s, m/s, rad/s, base frame: forward, sideways, turn.
        command: (T, 3) the same, as asked.
        torque_share: (T,) of the effort limit, the highest of all joints.
        altered_share: (T,) of the joint torques of this tick.
    """

    id: str
    same: bool
    time_s: np.ndarray
    tilt_rad: np.ndarray
    height: np.ndarray
    velocity: np.ndarray
    command: np.ndarray
    torque_share: np.ndarray
    altered_share: np.ndarray


class Recorder:
    """Watches one episode."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._rows: list[np.ndarray] = []  # 11 numbers each

    def __call__(self, now: float, plant: Plant, controls: Controls, command: np.ndarray) -> None:
        """Take note of a policy tick."""
        effort = np.abs(controls.torque[0]) / self._trial.robot.limits.effort
        lean, height = tilt(plant.quat_xyzw)[0], plant.clearance[0] / self._trial.height if plant.robot.floating else 1.0
        numbers = (
            now,
            lean,
            height,
            *plant.lin_vel[0, :2],
            plant.ang_vel[0, 2],
            *command[0],
            effort.max(),
            controls.altered[0],
        )
        self._rows.append(np.array(numbers))

    def trace(self, name: str, same: bool) -> Trace:
        """Return what was seen."""
        rows = np.array(self._rows).reshape(-1, 11)
        time_s, tilt, height, effort, altered = (rows[:, i] for i in (0, 1, 2, 9, 10))
        return Trace(name, same, time_s, tilt, height, rows[:, 3:6], rows[:, 6:9], effort, altered)


def retrace(trial: Trial, episode: Episode, z: np.ndarray | None = None) -> Trace:
    """Run an episode once more and return its trace.

    Args:
        trial: it belongs to.
        episode: as it came out before.
        z: (width,) its coordinates, when a search found it; None for one of the sequence.
    """
    recorder, name = Recorder(trial), EpisodeId.parse(episode.id)
    again = run(trial, name.scenario, [name.index], z=None if z is None else z[None], watch=recorder)
    return recorder.trace(episode.id, _outcome(again[0]) == _outcome(episode))


def _outcome(episode: Episode) -> tuple[object, ...]:
    return episode.reason, episode.end_s, episode.margin, dict(episode.figures)
