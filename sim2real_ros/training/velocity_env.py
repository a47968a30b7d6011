# SPDX-License-Identifier: Apache-2.0
"""The velocity task as an rsl_rl environment. Observation, clock and action are those that the policy node runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from sim2real_ros.action.decode import ActionDecoder
from sim2real_ros.contract import Contract
from sim2real_ros.errors import DocumentError
from sim2real_ros.observation import Moment, ObservationBuilder
from sim2real_ros.observation.clock import GaitClock
from sim2real_ros.robot import Robot
from sim2real_ros.rotations import gravity_in_base
from sim2real_ros.signals import RobotState
from sim2real_ros.sim.fleet import Fleet
from sim2real_ros.sim.ground import Ground
from sim2real_ros.sim.randomization import Ranges
from sim2real_ros.sim.verdict import TRAINING_FALL_TILT, TRAINING_START_HEIGHT, fallen
from sim2real_ros.training.commands import CommandSampler
from sim2real_ros.training.rewards import FALL, WEIGHTS, Step
from sim2real_ros.training.symmetry import Mirror, joint_mirror, observation_mirror

TIMESTEP = 0.005  # s; the servo inside MuJoCo needs no more
EPISODE_S, COMMAND_S = 20.0, 5.0
START_JITTER = 0.15


class VelocityEnv(VecEnv):
    """B randomised robots that follow velocity commands."""

    def __init__(
        self,
        robot: Robot,
        contract: Contract,
        size: int,
        *,
        ranges: Ranges,
        seed: int,
        threads: int = 0,
        ground: Ground | None = None,
    ) -> None:
        self.robot, self.contract = robot, contract
        self.fleet = Fleet(
            robot, size, ranges=ranges, seed=seed, timestep=TIMESTEP, actuators='position', threads=threads, ground=ground
        )
        self.period = contract.period_s
        self._substeps = round(self.period / TIMESTEP)
        if abs(self._substeps * TIMESTEP - self.period) > 1e-9:
            fault = f'rate_hz: {contract.file.rate_hz:g} Hz do not divide into physics steps of {TIMESTEP:g} s'
            raise DocumentError(contract.source, [fault])
        self.num_envs, self.num_actions, self.device = size, contract.action_width, 'cpu'
        self.cfg: dict[str, Any] = {}
        self.max_episode_length = round(EPISODE_S / self.period)
        self.builder, self._critic_builder = ObservationBuilder(contract, (size,)), ObservationBuilder(contract, (size,))
        self._clock, self._decoder = GaitClock(contract, (size,)), ActionDecoder(contract)
        self._sampler = CommandSampler(contract, self.fleet.rng)
        self._hips = np.array([i for i, joint in enumerate(robot.joints) if 'hip' in joint])
        self._torque, self._qacc = self.fleet.batch.bind('qfrc_actuator'), self.fleet.batch.bind('qacc')
        shape = (size, self.num_actions)
        self._actions = [np.zeros(shape) for _ in range(3)]  # newest first
        self._target = np.tile(contract.default_position, (size, 1))
        self.command = np.zeros((size, 3))
        self._ticks = np.zeros(size, dtype=int)
        self._foot_pos, self._foot_vel = self.fleet.foot_pos, np.zeros((size, len(robot.simulated().feet), 3))
        self._sums = {term.__name__: np.zeros(size) for term in WEIGHTS}
        self._reset(np.arange(size))
        self._observe()

    @property
    def episode_length_buf(self) -> torch.Tensor:
        """Ticks since the reset, as rsl_rl wants to read and set them."""
        return torch.from_numpy(self._ticks)

    @episode_length_buf.setter
    def episode_length_buf(self, ticks: torch.Tensor) -> None:
        self._ticks[:] = ticks.numpy()

    def get_observations(self) -> TensorDict:
        """Return the observation of the present tick."""
        return self._observations

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Advance every robot by one policy tick."""
        self._actions = [self._decoder.clip(actions.numpy().astype(float)), *self._actions[:2]]
        self._move()
        self._ticks += 1
        step = self._look()
        reward = np.zeros(self.num_envs)
        for term, weight in WEIGHTS.items():
            part = weight * self.period * term(step)
            self._sums[term.__name__] += part
            reward += part
        fell = fallen(self.fleet.quat_xyzw, step.height, TRAINING_FALL_TILT)
        timeout = (self._ticks >= self.max_episode_length) & ~fell
        reward += FALL * fell
        done = fell | timeout
        log = self._log(step, done, fell)
        self._next(done)
        self._observe()
        extras = {'time_outs': torch.from_numpy(timeout), 'log': log}
        return self._observations, torch.from_numpy(reward.astype(np.float32)), torch.from_numpy(done.astype(np.int64)), extras

    def mirror(self) -> Mirror:
        """Return the symmetry of this environment's observations and actions."""
        index, sign = joint_mirror(self.contract.joints)
        frame, frame_sign = observation_mirror(self.builder, 'obs', self.contract.joints)
        feet = np.array([1, 0, 3, 2])  # FL FR RL RR
        width, parts, signs = len(frame), [frame], [frame_sign]
        for own, own_sign in (
            (np.arange(3), np.array([1, -1, 1])),
            (np.arange(1), np.ones(1)),
            (feet, np.ones(4)),
            (feet, np.ones(4)),
            (feet, np.ones(4)),
            (np.arange(3), np.ones(3)),
        ):  # fmt: skip - in the order of `_privileged`
            parts.append(width + own)
            signs.append(own_sign)
            width += len(own)
        critic = (np.concatenate(parts), np.concatenate(signs))
        return Mirror({'actor': (frame, frame_sign), 'critic': critic}, (index, sign))

    # --- parts of a step

    def _move(self) -> None:
        new = self._decoder.decode(self._actions[0], 0.0).position
        delay = self.fleet.randomizer.delay_s[:, None]
        for substep in range(self._substeps):
            self.fleet.ctrl[:] = np.where(substep * TIMESTEP < delay - 1e-9, self._target, new)
            self.fleet.batch.step()
        self._target = new

    def _look(self) -> Step:
        fleet, foot_pos = self.fleet, self.fleet.foot_pos
        self._foot_vel = (foot_pos - self._foot_pos) / self.period
        self._foot_vel[self._ticks == 1] = 0.0
        self._foot_pos = foot_pos
        return Step(
            command=self.command,
            standing=np.logical_not(self.command.any(axis=1)),
            phase=self._clock.phase,
            lin_vel=fleet.lin_vel,
            ang_vel=fleet.ang_vel,
            gravity=gravity_in_base(fleet.quat_xyzw),
            height=fleet.height,
            joint_pos=fleet.joint_pos - self.contract.default_position,
            joint_vel=fleet.joint_vel,
            joint_acc=self._qacc[:, 6:],
            torque=self._torque[:, 6:],
            action=self._actions[0],
            last_action=self._actions[1],
            last_last_action=self._actions[2],
            foot_height=fleet.foot_height,
            foot_vel=self._foot_vel,
            hips=self._hips,
        )

    def _log(self, step: Step, done: np.ndarray, fell: np.ndarray) -> dict[str, float]:
        moving = ~step.standing
        log = {
            '/error/linear': float(np.linalg.norm(step.lin_vel[moving, :2] - step.command[moving, :2], axis=1).mean()),
            '/error/yaw': float(np.abs(step.ang_vel[moving, 2] - step.command[moving, 2]).mean()),
        }
        if done.any():
            log |= {f'/reward/{name}': float(total[done].mean() / EPISODE_S) for name, total in self._sums.items()}
            log['/fell'] = float(fell[done].mean())
        return log

    def _next(self, done: np.ndarray) -> None:
        """Begin new episodes, new commands and pushes."""
        if done.any():
            self._reset(np.flatnonzero(done))
        new = np.flatnonzero((self._ticks % round(COMMAND_S / self.period) == 0) & ~done)
        self.command[new] = self._sampler.draw(len(new))
        self.fleet.push(
            np.flatnonzero(self.fleet.rng.uniform(size=self.num_envs) < self.period / self.fleet.ranges.push_interval_s)
        )

    def _reset(self, ids: np.ndarray) -> None:
        self.fleet.reset(ids, self.contract.default_position, TRAINING_START_HEIGHT, START_JITTER)
        self._set_gains(ids)
        mask = np.zeros(self.num_envs, dtype=bool)
        mask[ids] = True
        self.builder.reset(mask)
        self._critic_builder.reset(mask)
        self._clock.reset(mask)
        for action in self._actions:
            action[ids] = 0.0
        self._target[ids] = self.contract.default_position
        self._ticks[ids] = 0
        self.command[ids] = self._sampler.draw(len(ids))
        for total in self._sums.values():
            total[ids] = 0.0

    def _set_gains(self, ids: np.ndarray) -> None:
        """Write the PD law into MuJoCo's position servos."""
        own = self.fleet.randomizer
        kp = self.contract.gains.stiffness * own.stiffness[ids] * own.strength[ids]
        kd = self.contract.gains.damping * own.damping[ids] * own.strength[ids]
        gain, bias = self.fleet.batch.expand('actuator_gainprm'), self.fleet.batch.expand('actuator_biasprm')
        gain[ids, :, 0], bias[ids, :, 1], bias[ids, :, 2] = kp, -kp, -kd

    def _observe(self) -> None:
        noisy = self._moment(self.fleet.sense(0.0), self._clock.tick(self.command))
        exact = self._moment(self.fleet.truth(0.0), noisy.phase)
        actor, critic = self.builder.build(noisy)['obs'], self._critic_builder.build(exact)['obs']
        self._observations = TensorDict(
            {
                'actor': torch.from_numpy(actor),
                'critic': torch.from_numpy(np.concatenate((critic, self._privileged()), axis=1)),
            },
            batch_size=[self.num_envs],
        )

    def _moment(self, state: RobotState, phase: np.ndarray) -> Moment:
        return Moment(state, self.contract.default_position, self.command, self._actions[0], self._actions[0], phase)

    def _privileged(self) -> np.ndarray:
        """What only the critic knows, scaled to order 1; `mirror` follows this order."""
        fleet, own = self.fleet, self.fleet.randomizer
        horizontal = np.linalg.norm(self._foot_vel[..., :2], axis=-1)
        parts = (
            2.0 * fleet.lin_vel, 5.0 * fleet.height[:, None], 10.0 * fleet.foot_height, 0.5 * self._foot_vel[..., 2],
            0.5 * horizontal, np.stack((own.friction, own.added_mass, 50.0 * own.delay_s), axis=1),
        )  # fmt: skip
        return np.concatenate(parts, axis=1).astype(np.float32)
