# SPDX-License-Identifier: Apache-2.0
"""Mass matrix and bias torque of a robot with its base held fast, from MuJoCo. The only place where the filter meets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sim2real_ros.errors import DocumentError
from sim2real_ros.robot import Robot

Dynamics = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""(q (n,) rad, v (n,) rad/s) -> (M (n, n) kg m^2, h (n,) N m), where M a + h is the torque that gives the acceleration a."""


def available() -> bool:
    """Return whether MuJoCo is installed."""
    try:
        import mujoco  # noqa: F401, PLC0415 - optional
    except ImportError:
        return False
    return True


class FixedBaseDynamics:
    """Dynamics of the URDF with the base bolted down and the reflected rotor inertia of the robot file.

    Friction and damping of the joints are left out: they only ever help a brake.
    """

    def __init__(self, robot: Robot) -> None:
        """Compile the model.

        Raises:
            DependencyError: MuJoCo is not installed.
            DocumentError: MuJoCo cannot read the URDF, or the robot file has no `simulation` section.
        """
        from sim2real_ros.sim.model import build_model, import_mujoco  # noqa: PLC0415 - optional

        self._mujoco = mujoco = import_mujoco()
        self._model = build_model(replace(robot, floating=False))
        self._data = mujoco.MjData(self._model)
        self._dofs = np.array([self._model.joint(name).dofadr[0] for name in robot.joints])
        self._qpos = np.array([self._model.joint(name).qposadr[0] for name in robot.joints])
        self._old = int(mujoco.__version__.split('.')[0]) < 4
        self._full = np.empty((self._model.nv, self._model.nv))

    def __call__(self, joint_pos: np.ndarray, joint_vel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mass matrix (n, n) kg m^2 and bias torque (n,) N m; the matrix is used again by the next call."""
        mujoco, model, data = self._mujoco, self._model, self._data
        data.qpos[self._qpos], data.qvel[self._dofs] = joint_pos, joint_vel
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_makeM(model, data)
        mujoco.mj_comVel(model, data)
        mujoco.mj_rne(model, data, 0, data.qfrc_bias)
        if self._old:
            mujoco.mj_fullM(model, self._full, data.qM)
        else:
            mujoco.mj_fullM(model, data, self._full)
        return self._full[np.ix_(self._dofs, self._dofs)], data.qfrc_bias[self._dofs]


def coupling(robot: Robot) -> FixedBaseDynamics | None:
    """Return the dynamics for the coupled barrier where the robot file wants it, or None for the per-joint one.

    Raises:
        DependencyError: it is wanted and MuJoCo is not installed.
        DocumentError: it is wanted for a floating base, which the mass matrix of a fixed one does not describe.
    """
    wanted = robot.safety.barrier
    if wanted == 'coupled' and robot.floating:
        raise DocumentError(str(robot.path), ['safety.barrier: coupled needs a fixed base; use per_joint or auto'])
    if wanted == 'per_joint' or (wanted == 'auto' and (robot.floating or robot.simulation is None or not available())):
        return None
    return FixedBaseDynamics(robot)
