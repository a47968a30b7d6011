# SPDX-License-Identifier: Apache-2.0
"""Promises of `build_model`: a plant from a description, with the robot file's figures."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sim2real_ros.errors import DependencyError, DocumentError, JointError, NotFoundError
from sim2real_ros.robot import Robot, load_robot
from sim2real_ros.sim.model import FLOOR, build_model

mujoco = pytest.importorskip('mujoco')

TWO_JOINTS = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    {floor}
    <body name="base_link" pos="0 0 1"><freejoint/><geom size="0.1"/>
      <body name="a"><joint name="{first}" range="-1 1" damping="9" frictionloss="9" armature="9"/>
        <geom size="0.05" pos="0 0.2 0"/></body>
      <body name="b"><joint name="{second}" range="-1 1"/><geom size="0.05" pos="0 -0.2 0"/></body>
    </body>
  </worldbody>
  <actuator><position joint="{first}" kp="500"/></actuator>
  <keyframe><key name="home" qpos="0 0 1 1 0 0 0 0 0"/></keyframe>
</mujoco>
"""


@pytest.fixture(scope='module')
def robot() -> Robot:
    return load_robot('go2')


@pytest.fixture(scope='module')
def model(robot):
    return build_model(robot)


def part(robot: Robot, joints: list[int]) -> Robot:
    """Return a robot of a few joints."""
    figures = robot.simulation
    index = np.array(joints)
    return replace(
        robot,
        joints=tuple(robot.joints[i] for i in joints),
        limits=replace(robot.limits, **{f: getattr(robot.limits, f)[index] for f in ('lower', 'upper', 'velocity', 'effort')}),
        simulation=replace(
            figures, **{f: getattr(figures, f)[index] for f in ('armature', 'joint_damping', 'joint_friction')}, feet=()
        ),
    )


def mjcf(folder: Path, first: str, second: str, floor: str = '') -> Path:
    path = folder / 'two.xml'
    path.write_text(TWO_JOINTS.format(first=first, second=second, floor=floor), encoding='utf-8')
    return path


def test_actuator_i_drives_robot_joint_i(robot, model):
    assert model.nu == len(robot.joints)
    for i, name in enumerate(robot.joints):
        assert model.actuator_trnid[i, 0] == model.joint(name).id
        data = mujoco.MjData(model)
        data.qpos[2] = 5.0
        data.ctrl[i] = 1.0
        mujoco.mj_forward(model, data)
        torque = np.zeros(model.nv)
        torque[model.joint(name).dofadr[0]] = 1.0
        assert np.allclose(data.qfrc_actuator, torque)


def test_joint_figures_come_from_the_robot_file(robot, model):
    for i, name in enumerate(robot.joints):
        dof = model.joint(name).dofadr[0]
        assert model.dof_armature[dof] == robot.simulation.armature[i]
        assert model.dof_damping[dof] == robot.simulation.joint_damping[i]
        assert model.dof_frictionloss[dof] == robot.simulation.joint_friction[i]
        assert tuple(model.joint(name).range) == pytest.approx((robot.limits.lower[i], robot.limits.upper[i]))


def test_no_torque_beyond_the_effort_limit_reaches_a_joint(robot, model):
    data = mujoco.MjData(model)
    data.ctrl[:] = 1e4
    mujoco.mj_forward(model, data)
    dofs = [model.joint(name).dofadr[0] for name in robot.joints]
    assert np.allclose(data.qfrc_actuator[dofs], robot.limits.effort)


def test_the_time_step_is_the_one_asked_for(robot):
    assert build_model(robot, timestep=0.005).opt.timestep == 0.005


def test_a_floating_robot_gets_a_free_base_and_a_fixed_one_none(robot, model):
    assert model.nq == 7 + len(robot.joints)
    assert build_model(replace(robot, floating=False)).nq == len(robot.joints)


def test_feet_and_imu_keep_their_names(robot, model):
    for name in (*robot.simulation.feet, robot.sensors.imu_frame):
        assert model.body(name).id > 0


def test_there_is_a_floor_and_every_collision_geom_of_the_robot_meets_it(model):
    floor = model.geom(FLOOR)
    assert floor.type == mujoco.mjtGeom.mjGEOM_PLANE
    solid = [g for g in range(model.ngeom) if g != floor.id and (model.geom_contype[g] or model.geom_conaffinity[g])]
    assert solid
    for g in solid:
        assert floor.contype & model.geom_conaffinity[g] or model.geom_contype[g] & floor.conaffinity


def test_floor_collisions_leave_out_the_robot_with_itself(robot):
    lean = build_model(robot, collisions='floor')
    own = [g for g in range(lean.ngeom) if g != lean.geom(FLOOR).id]
    assert not any(lean.geom_contype[g] & lean.geom_conaffinity[h] for g in own for h in own)
    whole = build_model(robot, collisions='all')
    assert any(whole.geom_contype[g] & whole.geom_conaffinity[h] for g in own for h in own if g != h)


def test_the_friction_that_counts_is_the_robots(robot, model):
    data = mujoco.MjData(model)
    data.qpos[2] = 0.2
    mujoco.mj_forward(model, data)
    floor = model.geom(FLOOR).id
    touching = [c for c in data.contact if floor in c.geom]
    assert touching
    for contact in touching:
        assert contact.friction[0] == robot.simulation.foot_friction


def test_position_actuators_are_servos_whose_gains_can_be_written(robot):
    servo = build_model(robot, actuators='position')
    servo.actuator_gainprm[:, 0], servo.actuator_biasprm[:, 1] = 30.0, -30.0
    data = mujoco.MjData(servo)
    data.qpos[2] = 5.0
    data.ctrl[:] = 0.1
    mujoco.mj_forward(servo, data)
    dofs = [servo.joint(name).dofadr[0] for name in robot.joints]
    assert np.allclose(data.qfrc_actuator[dofs], 3.0)


def test_an_mjcf_is_taken_with_the_robot_files_figures_and_without_its_actuators_and_keys(robot, tmp_path):
    two = part(robot, [1, 0])
    made = build_model(two, model_file=mjcf(tmp_path, robot.joints[0], robot.joints[1]))
    assert (made.nu, made.nkey, made.nq) == (2, 0, 9)
    assert made.opt.timestep == 0.002
    dof = made.joint(robot.joints[0]).dofadr[0]
    assert made.dof_damping[dof] == two.simulation.joint_damping[1]
    assert made.dof_armature[dof] == two.simulation.armature[1]
    assert [made.actuator_trnid[i, 0] for i in range(2)] == [made.joint(name).id for name in two.joints]


def test_a_floor_that_is_there_is_not_doubled(robot, tmp_path):
    floor = '<geom name="floor" type="plane" size="1 1 0.1"/>'
    made = build_model(part(robot, [0, 1]), model_file=mjcf(tmp_path, robot.joints[0], robot.joints[1], floor))
    assert (made.geom_type == mujoco.mjtGeom.mjGEOM_PLANE).sum() == 1


def test_the_model_of_another_maker_with_the_same_joints_is_taken(robot, third_party):
    path = third_party / 'models' / 'go2.xml'
    if not path.is_file():
        pytest.skip('there is no third-party model of the Go2')
    made = build_model(robot, model_file=path)
    assert made.nu == len(robot.joints)
    assert made.body_mass.sum() == pytest.approx(build_model(robot).body_mass.sum(), rel=0.05)


def test_a_model_with_other_joints_is_refused_with_the_names_of_both_sides(robot, tmp_path):
    with pytest.raises(JointError) as error:
        build_model(part(robot, [0, 1]), model_file=mjcf(tmp_path, robot.joints[0], 'tail'))
    assert error.value.missing == [robot.joints[1]]
    assert error.value.extra == ['tail']


def test_a_model_file_that_does_not_exist_is_named(robot, tmp_path):
    with pytest.raises(NotFoundError, match=r'absent\.xml'):
        build_model(robot, model_file=tmp_path / 'absent.xml')


@pytest.mark.parametrize('text', ['', 'not xml', '<mujoco><nonsense/></mujoco>', '<robot name="x"></robot'])
def test_a_file_that_mujoco_cannot_read_is_refused_in_one_line(robot, tmp_path, text):
    path = tmp_path / 'broken.xml'
    path.write_text(text, encoding='utf-8')
    with pytest.raises(DocumentError) as error:
        build_model(robot, model_file=path)
    assert error.value.source == str(path)
    assert len(error.value.faults) == 1
    assert '\n' not in error.value.faults[0]


def test_without_mujoco_the_message_says_how_to_install_it(robot, monkeypatch):
    monkeypatch.setitem(sys.modules, 'mujoco', None)
    with pytest.raises(DependencyError, match=r'pip install "sim2real_ros\[sim\]"'):
        build_model(robot)
