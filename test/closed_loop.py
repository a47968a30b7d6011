# SPDX-License-Identifier: Apache-2.0
"""A policy in closed loop on the MuJoCo model of its own robot: the least that a deployment is.

Torque is PD with the contract's gains, cut at the stated limits; joints are matched by name; the policy runs at its own
rate. No robot file of this project and no safety filter takes part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from public_policies import POLICIES, THIRD_PARTY, folder_of, spec_of

from sim2real_ros.action.pd import pd_torque
from sim2real_ros.contract.contract import Contract
from sim2real_ros.joints import JointMap
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.rotations import inverse_xyzw, multiply_xyzw, tilt, world_to_base, xyzw_from_wxyz
from sim2real_ros.signals import LEVEL_XYZW, JointTargets, RobotState

mujoco = pytest.importorskip('mujoco')
SETTLE_S = 2.0  # left out of means
LEANS, SINKS = 0.8, 0.6  # a fall: rad, or share of the height that the centre of mass had at the start
CORNERS = np.array([[0.35, -0.2, 0.15], [0.65, 0.2, 0.5]])  # m, where the arm's goals lie
GOAL_S, GOALS = 8.0, 12  # to settle; one goal in fifty needs more than 4 s


class Plant:
    """The robot of a policy, joints in the policy's order."""

    def __init__(self, name: str, contract: Contract, joints: tuple[str, ...] | None = None) -> None:
        """Put the robot on its feet in the default pose; `joints` is who answers to the contract's joints, by place."""
        public, spec, self._gains = POLICIES[name], spec_of(name), contract.gains
        self.model = mujoco.MjModel.from_xml_path(str(THIRD_PARTY / name / spec['model']))
        self.data = mujoco.MjData(self.model)
        hinges = np.flatnonzero(self.model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE)
        names = [self.model.joint(j).name for j in hinges]
        hinges = hinges[JointMap(names, joints or contract.joints, source='the model', target='the policy').index]
        self._q, self._v = self.model.jnt_qposadr[hinges], self.model.jnt_dofadr[hinges]
        self._free = self.model.nq > len(names)
        self._limits = self.model.jnt_actfrcrange[hinges, 1]
        if isinstance(spec.get('tau_limit'), list):
            self._limits = np.array([dict(zip(spec['joints'], spec['tau_limit'], strict=True))[j] for j in contract.joints])
        self.model.opt.timestep = public.timestep or self.model.opt.timestep
        self.model.actuator_gainprm[:] = self.model.actuator_biasprm[:] = 0.0  # some are servos
        if public.rotors:
            self.model.dof_armature[self._v] = contract.gains.stiffness / (20 * np.pi) ** 2
        if public.undamped:
            self.model.dof_damping[self._v] = 0.0
        self.data.qpos[self._q] = contract.default_position
        if self._free:
            self._set_down()
        mujoco.mj_forward(self.model, self.data)
        self._height = self.data.subtree_com[0, 2]

    def _set_down(self) -> None:
        low, high = -2.0, 2.0  # m, of the base: touching, and not
        for _ in range(40):
            self.data.qpos[2] = 0.5 * (low + high)
            mujoco.mj_forward(self.model, self.data)
            low, high = (self.data.qpos[2], high) if self.data.ncon else (low, self.data.qpos[2])
        self.data.qpos[2] = high

    def state(self) -> RobotState:
        """Return what perfect sensors read."""
        q, v, base = self.data.qpos[self._q], self.data.qvel[self._v], self.data.qpos
        if not self._free:
            return RobotState(self.data.time, q, v, LEVEL_XYZW, np.zeros(3), np.zeros(3))
        quat, rate = xyzw_from_wxyz(base[3:7]), self.data.qvel[3:6].copy()
        speed = world_to_base(quat, self.data.qvel[:3])
        return RobotState(self.data.time, q, v, quat, rate, speed, base_pos=base[:3].copy())

    def follow(self, targets: JointTargets, until: float) -> None:
        """Drive the joints until a time in s."""
        while self.data.time < until - 0.5 * self.model.opt.timestep:
            torque = pd_torque(targets, self._gains, self.data.qpos[self._q], self.data.qvel[self._v])
            self.data.qfrc_applied[self._v] = np.clip(torque, -self._limits, self._limits)
            mujoco.mj_step(self.model, self.data)

    @property
    def fallen(self) -> bool:
        """Whether it leans or has sunk too far."""
        leans = tilt(xyzw_from_wxyz(self.data.qpos[3:7])) > LEANS
        return bool(leans or self.data.subtree_com[0, 2] < SINKS * self._height)

    def hand(self) -> tuple[np.ndarray, np.ndarray]:
        """Return where the arm's hand is: m, quaternion xyzw."""
        site, quat = self.data.site('ee'), np.zeros(4)
        mujoco.mju_mat2Quat(quat, site.xmat)
        return site.xpos.copy(), xyzw_from_wxyz(quat)


@dataclass(frozen=True)
class Walk:
    """What a legged robot did."""

    fell_at_s: float | None
    velocity: np.ndarray  # (3,) m/s in the base frame, mean without the beginning
    lean: float  # rad, largest
    positions: np.ndarray  # (k, n) rad, joints in policy order, of every tick


def walk(name: str, contract: Contract, seconds: float, each_tick: Callable[[PolicyRunner], None] = lambda _: None) -> Walk:
    """Let a policy walk, or until it falls; `each_tick` is called before each of its ticks."""
    plant, runner, states = Plant(name, contract), PolicyRunner(contract), []
    command = np.array(POLICIES[name].command)
    for tick in range(round(seconds * contract.file.rate_hz)):
        states.append(plant.state())
        each_tick(runner)
        plant.follow(runner.step(states[-1], command), (tick + 1) * contract.period_s)
        if plant.fallen:
            break
    speeds = np.array([state.base_lin_vel for state in states])[round(SETTLE_S * contract.file.rate_hz) :]
    return Walk(
        plant.data.time if plant.fallen else None,
        speeds.mean(axis=0) if len(speeds) else np.zeros(3),
        max(float(tilt(state.base_quat_xyzw)) for state in states),
        np.array([state.joint_pos for state in states]),
    )


@dataclass(frozen=True)
class Reach:
    """What an arm did, k ticks and g goals."""

    states: list[RobotState]  # (k,)
    goals: np.ndarray  # (k, 7) m, quaternion xyzw
    inputs: np.ndarray  # (k, width) as fed
    actions: np.ndarray  # (k, n) as the network gave them
    targets: np.ndarray  # (k, n) rad
    distances: np.ndarray  # (g,) m, when the time of each goal was over
    angles: np.ndarray  # (g,) rad


def reach(name: str, contract: Contract, joints: tuple[str, ...] | None = None, goals: int = GOALS) -> Reach:
    """Let an arm reach for goals, the hand pointing down, any yaw; `joints` as in `Plant`."""
    plant, runner, random = Plant(name, contract, joints), PolicyRunner(contract), np.random.default_rng(0)
    ticks: list[tuple] = []
    errors = []
    for _ in range(goals):
        goal = draw_goal(random)
        for _ in range(round(GOAL_S * contract.file.rate_hz)):
            state = plant.state()
            targets = runner.step(state, np.zeros(3), goal)
            ticks.append((state, goal, *(v.copy() for v in (*runner.observation.values(), runner.action)), targets.position))
            plant.follow(targets, len(ticks) * contract.period_s)
        position, quat = plant.hand()
        turn = multiply_xyzw(inverse_xyzw(quat), goal[3:])
        errors.append((np.linalg.norm(position - goal[:3]), 2 * np.arctan2(np.linalg.norm(turn[:3]), abs(turn[3]))))
    states, *arrays = zip(*ticks, strict=True)
    return Reach(list(states), *map(np.array, arrays), *np.array(errors).T)


def draw_goal(random: np.random.Generator) -> np.ndarray:
    """Return a goal of the training's ranges, (7,) m, quaternion xyzw."""
    yaw, half = random.uniform(-np.pi, np.pi), np.sqrt(0.5)
    heading, down = np.array([0, 0, np.sin(yaw / 2), np.cos(yaw / 2)]), np.array([0, half, 0, half])
    return np.concatenate((random.uniform(*CORNERS), multiply_xyzw(heading, down)))


def reference_of_dance(contract: Contract, ticks: int) -> np.ndarray:
    """Return the joint positions that the dance's own network plays, (k, n) rad, asked without any of our code."""
    from onnxruntime import InferenceSession

    (path,) = folder_of('holosoma_wbt_dance').glob('*.onnx')
    session, zeros = InferenceSession(str(path)), np.zeros((1, 154), np.float32)
    steps = (np.array([[tick]], np.float32) for tick in range(ticks))
    return np.array([session.run(['joint_pos'], {'obs': zeros, 'time_step': step})[0][0] for step in steps])
