# SPDX-License-Identifier: Apache-2.0
"""The task `go2_velocity`: follow a velocity command, as an rsl_rl environment on `mujoco.batch.Batch`."""

from __future__ import annotations

import numpy as np
import torch
from mujoco.batch import Batch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from sim2real_ros.robot import load_robot
from sim2real_ros.sim.model import build_model
from sim2real_ros.training import rewards
from sim2real_ros.training.randomization import Randomizer, Ranges

TIMESTEP, DECIMATION = 0.005, 4
PERIOD = TIMESTEP * DECIMATION
GAIT_TICKS = 25  # 0.5 s
EPISODE_TICKS = 1000
COMMAND_TICKS = 250
STIFFNESS, DAMPING, ACTION_SCALE = 25.0, 0.6, 0.25
COMMAND_LOW, COMMAND_HIGH = np.array([-1.0, -0.5, -1.2]), np.array([1.3, 0.5, 1.2])


class VelocityEnv(VecEnv):
    def __init__(self, num_envs: int, seed: int = 0, nthread: int = 2, ranges: Ranges = Ranges()) -> None:
        robot = load_robot('go2')
        self.rng = np.random.default_rng(seed)
        self.num_envs, self.num_actions = num_envs, 12
        self.max_episode_length, self.device, self.cfg = EPISODE_TICKS, 'cpu', {}
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self.batch = Batch(build_model(robot, timestep=TIMESTEP, actuators='position', collisions='all'), num_envs, nthread)
        self.ranges = ranges
        self.randomizer = Randomizer(self.batch, robot, ranges, self.rng)
        b = self.batch
        self.qpos, self.qvel, self.ctrl, self.qacc, self.xpos = b.qpos, b.qvel, b.ctrl, b.qacc, b.xpos
        self.torque = b.bind('qfrc_actuator')
        self.feet = [b.model.body(f).id for f in robot.simulation.feet]
        self.default = np.array(
            [
                s * 0.1 if 'hip' in n else (0.8 if n[0] == 'F' else 1.0) if 'thigh' in n else -1.5
                for n in robot.joints
                for s in [1 if n[1] == 'L' else -1]
            ]
        )
        self.hips = np.array([i for i, n in enumerate(robot.joints) if 'hip' in n])
        self.kp, self.kd = np.full(12, STIFFNESS), np.full(12, DAMPING)
        B = num_envs
        self.command, self.standing = np.zeros((B, 3)), np.zeros(B, bool)
        self.ticks, self.clock = np.zeros(B, int), np.zeros(B, int)
        self.delay = np.zeros(B, int)
        self.actions = np.zeros((3, B, 12))
        self.target = np.tile(self.default, (B, 1))
        self.sums = {f.__name__: np.zeros(B) for f in rewards.WEIGHTS}
        self.foot_pos = np.zeros((B, 4, 3))
        self.foot_vel = np.zeros((B, 4, 3))
        self._reset(np.arange(B))
        self.batch.forward()

    # --- episode
    def _reset(self, ids):
        k = len(ids)
        if k == 0:
            return
        self.batch.reset(ids, stage=0)
        self.randomizer.draw(ids, self.kp, self.kd)
        r = self.rng
        q = np.zeros((k, 19))
        yaw = r.uniform(-np.pi, np.pi, k)
        q[:, 2] = 0.33
        q[:, 3], q[:, 6] = np.cos(yaw / 2), np.sin(yaw / 2)
        q[:, 7:] = self.default + r.uniform(-0.15, 0.15, (k, 12))
        self.qpos[ids] = q
        v = np.zeros((k, 18))
        v[:, :2] = r.uniform(-0.4, 0.4, (k, 2))
        v[:, 3:6] = r.uniform(-0.4, 0.4, (k, 3))
        self.qvel[ids] = v
        self.ctrl[ids] = self.default
        self.target[ids] = self.default
        self.actions[:, ids] = 0
        self.ticks[ids] = 0
        self.clock[ids] = 0
        self.delay[ids] = r.integers(
            round(self.ranges.action_delay_s[0] / TIMESTEP), round(self.ranges.action_delay_s[1] / TIMESTEP) + 1, k
        )
        self._new_command(ids)
        self.foot_pos[ids] = np.nan
        for s in self.sums.values():
            s[ids] = 0

    def _new_command(self, ids):
        k, r = len(ids), self.rng
        c = r.uniform(COMMAND_LOW, COMMAND_HIGH, (k, 3))
        kind = r.uniform(size=k)
        c[kind < 0.1] = 0
        straight = (kind >= 0.1) & (kind < 0.3)
        c[straight, 1:] = 0
        side = (kind >= 0.3) & (kind < 0.4)
        c[side, 0] = 0
        c[side, 2] = 0
        turn = (kind >= 0.4) & (kind < 0.5)
        c[turn, :2] = 0
        self.command[ids] = c
        self.standing[ids] = np.linalg.norm(c, axis=1) < 0.1
        self.command[self.standing] = 0

    # --- observation
    def _frames(self):
        w, x, y, z = self.qpos[:, 3:7].T
        R = np.empty((self.num_envs, 3, 3))
        R[:, 0, 0] = 1 - 2 * (y * y + z * z)
        R[:, 0, 1] = 2 * (x * y - w * z)
        R[:, 0, 2] = 2 * (x * z + w * y)
        R[:, 1, 0] = 2 * (x * y + w * z)
        R[:, 1, 1] = 1 - 2 * (x * x + z * z)
        R[:, 1, 2] = 2 * (y * z - w * x)
        R[:, 2, 0] = 2 * (x * z - w * y)
        R[:, 2, 1] = 2 * (y * z + w * x)
        R[:, 2, 2] = 1 - 2 * (x * x + y * y)
        return np.einsum('bij,bi->bj', R, self.qvel[:, :3]), self.qvel[:, 3:6].copy(), -R[:, 2, :]

    def _phase(self):
        return (self.clock % GAIT_TICKS) / GAIT_TICKS

    def get_observations(self):
        B = self.num_envs
        lin, ang, grav = self._frames()
        q, qd = self.qpos[:, 7:] - self.default, self.qvel[:, 6:]
        ph = 2 * np.pi * self._phase()
        clock = np.stack([np.sin(ph), np.cos(ph)], 1) * ~self.standing[:, None]
        cmd = self.command * [2.0, 2.0, 0.25]
        n, u = self.ranges, lambda shape: self.rng.uniform(-1, 1, shape)
        policy = np.concatenate(
            [
                (ang + u((B, 3)) * n.noise_base_ang_vel) * 0.25,
                grav + u((B, 3)) * n.noise_projected_gravity,
                cmd,
                q + self.randomizer.joint_offset + u((B, 12)) * n.noise_joint_pos,
                (qd + u((B, 12)) * n.noise_joint_vel) * 0.05,
                self.actions[0],
                clock,
            ],
            1,
        )
        feet = self.xpos[:, self.feet, 2] - 0.022
        b = self.batch
        privileged = np.stack([b.expand('geom_friction')[:, -1, 0], b.expand('body_mass')[:, 1] - 6.9, self.delay / 4.0], 1)
        critic = np.concatenate(
            [
                ang * 0.25,
                grav,
                cmd,
                q,
                qd * 0.05,
                self.actions[0],
                clock,
                lin * 2,
                self.qpos[:, 2:3] * 5,
                feet * 10,
                self.foot_vel[..., 2] * 0.5,
                np.linalg.norm(self.foot_vel[..., :2], axis=-1) * 0.5,
                privileged,
            ],
            1,
        )
        return TensorDict(
            {
                'policy': torch.from_numpy(policy.astype(np.float32)),
                'critic': torch.from_numpy(critic.astype(np.float32)),
            },
            batch_size=[B],
        )

    # --- step
    def step(self, actions):
        a = np.clip(actions.numpy().astype(float), -10, 10)
        self.actions = np.concatenate([a[None], self.actions[:2]])
        old, new = self.target, self.default + ACTION_SCALE * a
        for i in range(DECIMATION):
            self.ctrl[:] = np.where((i < self.delay)[:, None], old, new)
            self.batch.step()
        self.target = new
        self.ticks += 1
        self.clock = np.where(self.standing, 0, self.clock + 1)
        foot = self.xpos[:, self.feet]
        self.foot_vel = np.nan_to_num((foot - self.foot_pos) / PERIOD)
        self.foot_pos = foot.copy()
        lin, ang, grav = self._frames()
        s = rewards.Step(
            self.command,
            self.standing,
            self._phase(),
            lin,
            ang,
            grav,
            self.qpos[:, 2],
            self.qpos[:, 7:] - self.default,
            self.qvel[:, 6:],
            self.qacc[:, 6:],
            self.torque[:, 6:],
            self.actions[0],
            self.actions[1],
            self.actions[2],
            foot[..., 2] - 0.022,
            self.foot_vel,
            self.hips,
        )
        reward = np.zeros(self.num_envs)
        for f, w in rewards.WEIGHTS.items():
            value = w * PERIOD * f(s)
            reward += value
            self.sums[f.__name__] += value
        fell = (grav[:, 2] > -0.5) | (self.qpos[:, 2] < 0.16) | ~np.isfinite(self.qpos).all(1)
        reward += rewards.FALL * fell
        timeout = self.ticks >= EPISODE_TICKS
        done = fell | timeout
        log = {}
        if done.any():
            ids = np.flatnonzero(done)
            for name, t in self.sums.items():
                log[f'/reward/{name}'] = float(t[ids].mean() / (EPISODE_TICKS * PERIOD))
            log['/fell'] = float(fell[ids].mean())
        moving = ~self.standing
        log['/err/lin'] = float(np.linalg.norm(lin[moving, :2] - self.command[moving, :2], axis=1).mean())
        log['/err/yaw'] = float(np.abs(ang[moving, 2] - self.command[moving, 2]).mean())
        self._reset(np.flatnonzero(done))
        self._new_command(np.flatnonzero((self.ticks % COMMAND_TICKS == 0) & ~done))
        push = np.flatnonzero(self.rng.uniform(size=self.num_envs) < PERIOD / self.ranges.push_interval_s)
        self.qvel[push, :2] += self.rng.uniform(-1, 1, (len(push), 2)) * self.ranges.push_speed
        self.qvel[push, 5] += self.rng.uniform(-1, 1, len(push)) * self.ranges.push_yaw_rate
        self.episode_length_buf = torch.from_numpy(self.ticks)
        return (
            self.get_observations(),
            torch.from_numpy(reward.astype(np.float32)),
            torch.from_numpy(done.astype(np.int64)),
            {'time_outs': torch.from_numpy(timeout & ~fell), 'log': log},
        )


MIRROR = np.concatenate([np.arange(3, 6), np.arange(0, 3), np.arange(9, 12), np.arange(6, 9)])
SIGN = np.tile([-1.0, 1.0, 1.0], 4)


def mirror(env, obs, actions):
    """Left-right mirror images appended."""
    j, s = torch.from_numpy(MIRROR), torch.from_numpy(SIGN.astype(np.float32))
    out_obs = out_act = None
    if obs is not None:

        def base(x):
            y = x.clone()
            y[:, 0:3] = x[:, 0:3] * torch.tensor([-1.0, 1, -1])
            y[:, 3:6] = x[:, 3:6] * torch.tensor([1.0, -1, 1])
            y[:, 6:9] = x[:, 6:9] * torch.tensor([1.0, -1, -1])
            for o in (9, 21, 33):
                y[:, o : o + 12] = x[:, o : o + 12][:, j] * s
            y[:, 45:47] = -x[:, 45:47]
            return y

        p, c = obs['policy'], obs['critic']
        cm = base(c)
        cm[:, 47:50] = c[:, 47:50] * torch.tensor([1.0, -1, 1])
        cm[:, 51:55] = c[:, 51:55][:, [1, 0, 3, 2]]
        cm[:, 55:59] = c[:, 55:59][:, [1, 0, 3, 2]]
        cm[:, 59:63] = c[:, 59:63][:, [1, 0, 3, 2]]
        out_obs = TensorDict({'policy': torch.cat([p, base(p)]), 'critic': torch.cat([c, cm])}, batch_size=[2 * len(p)])
    if actions is not None:
        out_act = torch.cat([actions, actions[:, j] * s])
    return out_obs, out_act
