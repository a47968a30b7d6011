# SPDX-License-Identifier: Apache-2.0
"""Promises of the whole stack in one process: it stands up calmly and walks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper

from sim2real_ros.contract import load_contract
from sim2real_ros.errors import DocumentError
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.robot import Robot, load_robot
from sim2real_ros.rotations import tilt
from sim2real_ros.safety import Mode, SafetyFilter
from sim2real_ros.safety.modes import Event

pytest.importorskip('mujoco')

from sim2real_ros.sim.lockstep import Lockstep  # noqa: E402 - needs MuJoCo
from sim2real_ros.sim.world import World  # noqa: E402

TERMS = [
    {'term': 'base_ang_vel', 'scale': 0.25},
    {'term': 'projected_gravity'},
    {'term': 'velocity_command'},
    {'term': 'joint_pos_rel'},
    {'term': 'joint_vel', 'scale': 0.05},
    {'term': 'last_action', 'value': 'clipped'},
]
# rl_sar's go2/robot_lab as its spec.json describes it
ROBOT_LAB_JOINTS = [f'{leg}_{part}_joint' for leg in ('FR', 'FL', 'RR', 'RL') for part in ('hip', 'thigh', 'calf')]


def document(joints: list[str], stiffness: float, damping: float, scale: float | dict[str, float]) -> dict[str, Any]:
    """Return a contract as parsed YAML: standing pose of the Go2, 45 numbers in, 12 out."""
    return {
        'schema': 1,
        'name': 'lockstep_test',
        'robot': 'go2',
        'model': {'file': 'policy.onnx'},
        'rate_hz': 50,
        'joints': joints,
        'default_position': {'.*_hip_joint': 0.0, '.*_thigh_joint': 0.8, '.*_calf_joint': -1.5},
        'stiffness': {'.*': stiffness},
        'damping': {'.*': damping},
        'inputs': {'obs': {'stack': {'lags': [0], 'layout': 'term_major', 'fill': 'first'}, 'terms': TERMS}},
        'outputs': {'actions': {'type': 'joint_position', 'scale': scale, 'offset': 'default', 'clip': [-100, 100]}},
        'commands': {'velocity': {'x': [-1, 1], 'y': [-1, 1], 'yaw': [-1, 1], 'timeout_s': 0.5}},
        'provenance': {'trainer': 'none, made for a test'},
    }


def standing_policy(folder: Path, joints: tuple[str, ...]) -> Path:
    """Write a policy whose actions are zero: it holds the default pose."""
    graph = helper.make_graph(
        [helper.make_node('MatMul', ['obs', 'W'], ['actions'])],
        'zeros',
        [helper.make_tensor_value_info('obs', TensorProto.FLOAT, [1, 45])],
        [helper.make_tensor_value_info('actions', TensorProto.FLOAT, [1, 12])],
        [numpy_helper.from_array(np.zeros((45, 12), np.float32), 'W')],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)])
    model.ir_version = 8
    onnx.save(model, folder / 'policy.onnx')
    path = folder / 'policy.yaml'
    path.write_text(yaml.safe_dump(document(list(joints), 40.0, 1.5, 0.25)), encoding='utf-8')
    return path


@pytest.fixture(scope='module')
def robot() -> Robot:
    return load_robot('go2')


@pytest.fixture(scope='module')
def standing(robot, tmp_path_factory) -> PolicyRunner:
    return PolicyRunner(load_contract(standing_policy(tmp_path_factory.mktemp('standing'), robot.joints)))


@pytest.fixture(scope='module')
def robot_lab(third_party, tmp_path_factory) -> PolicyRunner:
    network = third_party / 'rl_sar_go2_robot_lab' / 'robot_lab' / 'policy.onnx'
    if not network.is_file():
        pytest.skip('there is no policy rl_sar_go2_robot_lab')
    scale = {'.*_hip_joint': 0.125, '.*_thigh_joint': 0.25, '.*_calf_joint': 0.25}
    data = document(ROBOT_LAB_JOINTS, 20.0, 0.5, scale)
    data['model']['file'] = str(network)
    path = tmp_path_factory.mktemp('robot_lab') / 'policy.yaml'
    path.write_text(yaml.safe_dump(data), encoding='utf-8')
    return PolicyRunner(load_contract(path))


def stack(robot: Robot, runner: PolicyRunner, offset: np.ndarray | None = None) -> Lockstep:
    """Return a stack whose robot lies on the floor."""
    world = World(robot)
    world.reset(joint_offset=offset)
    runner.reset()
    return Lockstep(world, SafetyFilter(robot), runner)


def insist(lockstep: Lockstep, event: Event) -> None:
    refusal = lockstep.safety.request(event)
    assert refusal is None, refusal


def stand_up(lockstep: Lockstep, watch: list[tuple[float, float, float]] | None = None) -> None:
    """Damp, pose, activate, and follow for 1 s; `watch` receives lowest foot, vertical speed and lean of every tick."""

    def go(seconds: float) -> None:
        for _ in range(round(seconds / 0.002)):
            state = lockstep.tick()
            world = lockstep.world
            if watch is not None:
                watch.append((world.foot_heights().min(), world.data.qvel[2], float(tilt(state.base_quat_xyzw))))

    go(0.02)
    insist(lockstep, Event.DAMP)
    go(1.1)  # nothing may be wrong for 1 s
    insist(lockstep, Event.POSE)
    go(2.6)
    insist(lockstep, Event.ACTIVATE)
    go(1.0)


def check_stand_up(robot: Robot, runner: PolicyRunner, seed: int) -> None:
    """A robot that lies in some way stands up without jumping, tipping or a fault."""
    lockstep = stack(robot, runner, np.random.default_rng(seed).uniform(-0.1, 0.1, 12))
    watch: list[tuple[float, float, float]] = []
    stand_up(lockstep, watch)
    feet, speeds, leans = np.array(watch).T
    foot, leaning = feet.max(), leans.max()
    speed = np.abs(speeds[round(0.32 / 0.002) :]).max()  # before, a robot that does not lie flat falls flat
    assert lockstep.safety.mode is Mode.ACTIVE, lockstep.safety.last_change
    assert foot < 0.02, f'all feet were {100 * foot:.1f} cm above the floor'
    assert speed < 0.3, f'the base moved at {speed:.2f} m/s up or down'
    assert leaning < 0.3, f'the base leaned by {leaning:.2f} rad'
    assert lockstep.world.base_position()[2] > 0.25
    assert np.abs(lockstep.world.joint_pos - robot.pose('stand')).max() < 0.25


@pytest.mark.parametrize('seed', range(5))
def test_the_robot_stands_up_without_jumping_or_tipping_however_it_lies(robot, standing, seed):
    check_stand_up(robot, standing, seed)


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(5, 20))
def test_the_robot_stands_up_without_jumping_or_tipping_however_it_lies_twenty_of_twenty(robot, standing, seed):
    check_stand_up(robot, standing, seed)


def test_the_robot_stands_for_ten_seconds_under_a_policy_of_zeros(robot, standing):
    lockstep = stack(robot, standing)
    stand_up(lockstep)
    start = lockstep.world.base_position()
    lockstep.run(10.0)
    assert lockstep.safety.mode is Mode.ACTIVE
    assert np.linalg.norm(lockstep.world.base_position() - start) < 0.02


def test_a_public_policy_walks_at_the_commanded_speed_and_does_not_fall(robot, robot_lab):
    """0.5 m/s are asked, and without any limit on its torques it walks at 0.49; it drifts to the left: speed along its path."""
    lockstep = stack(robot, robot_lab)
    stand_up(lockstep)
    lockstep.command[:] = (0.5, 0.0, 0.0)
    lockstep.run(2.0)
    velocities, leans, heights = [], [], []
    for _ in range(round(10.0 / 0.002)):
        state = lockstep.tick()
        velocities.append(state.base_lin_vel[:2])
        leans.append(float(tilt(state.base_quat_xyzw)))
        heights.append(lockstep.world.base_position()[2])
    speed = np.linalg.norm(np.mean(velocities, axis=0))
    assert lockstep.safety.mode is Mode.ACTIVE, lockstep.safety.last_change
    assert 0.45 <= speed <= 0.55, f'{speed:.3f} m/s'
    assert max(leans) < 0.3
    assert min(heights) > 0.25


def test_a_robot_that_is_damped_sinks_to_the_floor(robot, standing):
    lockstep = stack(robot, standing)
    stand_up(lockstep)
    insist(lockstep, Event.DAMP)
    speeds = []
    for _ in range(1000):
        lockstep.tick()
        speeds.append(lockstep.world.data.qvel[2])
    assert min(speeds) > -0.8  # free fall from the stand would reach 2 m/s
    assert lockstep.world.base_position()[2] < 0.2


def test_nothing_moves_the_joints_while_the_filter_is_off(robot, standing):
    lockstep = stack(robot, standing)
    lockstep.run(0.1)
    assert lockstep.sent is None
    assert (lockstep.world.data.ctrl == 0).all()


def test_two_runs_are_the_same_bit_for_bit(robot, standing):
    ends = []
    for _ in range(2):
        lockstep = stack(robot, standing, np.full(12, 0.03))
        stand_up(lockstep)
        ends.append(lockstep.world.data.qpos.tobytes())
    assert ends[0] == ends[1]


def test_a_policy_for_another_robot_is_refused_at_once(robot, standing, tmp_path):
    path = standing_policy(tmp_path, robot.joints)
    data = yaml.safe_load(path.read_text(encoding='utf-8'))
    path.write_text(yaml.safe_dump(data | {'robot': 'spot'}), encoding='utf-8')
    with pytest.raises(DocumentError, match='spot'):
        stack(robot, PolicyRunner(load_contract(path)))
