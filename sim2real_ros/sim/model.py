# SPDX-License-Identifier: Apache-2.0
"""A MuJoCo model from any URDF or MJCF, with floor, free base, motors and the robot file's joint figures."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sim2real_ros.errors import DependencyError, DocumentError, NotFoundError
from sim2real_ros.joints import JointMap
from sim2real_ros.robot import Robot

if TYPE_CHECKING:
    import mujoco

    from sim2real_ros.sim.ground import Ground

FLOOR, IMU = 'floor', 'imu_sensor'
GROUND_BIT, ROBOT_BIT = 1, 2  # contact bits: with the floor, with the robot itself


def import_mujoco() -> ModuleType:
    """Import mujoco, or say how to install it."""
    try:
        import mujoco  # noqa: PLC0415 - optional
    except ImportError as error:
        raise DependencyError(f'the embedded simulator needs MuJoCo ({error}): pip install "sim2real_ros[sim]"') from None
    return mujoco


def build_model(robot: Robot, **options: Any) -> mujoco.MjModel:
    """Compile what `build_spec` makes; takes its arguments and raises what it does."""
    spec = build_spec(robot, **options)
    try:
        return spec.compile()
    except ValueError as error:
        source = options.get('model_file') or robot.urdf
        raise DocumentError(str(source), [f'MuJoCo cannot compile it: {" ".join(str(error).split())}']) from None


def build_spec(
    robot: Robot,
    *,
    timestep: float = 0.002,
    model_file: Path | None = None,
    actuators: Literal['motor', 'position'] = 'motor',
    collisions: Literal['floor', 'all'] = 'all',
    ground: Ground | None = None,
) -> mujoco.MjSpec:
    """Make the robot on a flat floor, or on the ground that is given.

    Joint friction, damping and armature come from the robot file, effort limits from its limits; what the URDF or
    MJCF says about them is replaced, so that a description made for a picture becomes a plant.

    Args:
        robot: the robot; its joints must be those of the model.
        timestep: physics step in s.
        model_file: URDF or MJCF to use instead of the robot's URDF.
        actuators: `motor` takes torque in N m; `position` is a servo for training, gains set per simulation.
        collisions: `floor` lets geoms touch the floor only, three times faster; `all` adds the robot with itself.
        ground: to stand on; a level plane when None.

    Returns:
        What can be compiled, or written as MJCF; actuator i drives robot joint i.

    Raises:
        DependencyError: MuJoCo is not installed.
        DocumentError: MuJoCo refuses the file.
        JointError: its joints are not the robot's.
    """
    mujoco = import_mujoco()
    path = model_file or robot.urdf
    if not path.is_file():
        raise NotFoundError(f'the robot model {path} does not exist')
    try:
        spec = mujoco.MjSpec.from_file(str(path))
    except ValueError as error:
        raise DocumentError(str(path), [f'MuJoCo cannot read it: {" ".join(str(error).split())}']) from None
    spec.compiler.fusestatic = False  # feet and IMU are fixed links; they keep their names
    spec.compiler.discardvisual = False  # else the floor's texture would go with the URDF's visuals
    for actuator in list(spec.actuators):
        spec.delete(actuator)
    for element in [*spec.keys, *spec.sensors]:  # of the file's own simulation; a sensor of ours may bear the same name
        spec.delete(element)
    if ground is not None:
        ground.add(spec)
    _add_world(mujoco, spec, robot, timestep)
    _set_joints(mujoco, spec, robot, actuators, str(path))
    _set_contacts(mujoco, spec, robot, collisions)
    _add_sensors(mujoco, spec, robot)
    return spec


def soles(model: mujoco.MjModel, robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Return the body of each foot (feet,) and the radius of its sphere (feet,) m, 0 where it has none.

    Raises:
        NotFoundError: the model has no such body; the message lists its bodies.
    """
    names = [model.body(i).name for i in range(model.nbody)]
    missing = [foot for foot in robot.simulated().feet if foot not in names]
    if missing:
        raise NotFoundError(f'the model has no body {", ".join(missing)} (simulation.feet); its bodies are {", ".join(names)}')
    bodies = np.array([names.index(foot) for foot in robot.simulated().feet], dtype=int)
    radius = [model.geom_size[model.body_geomadr[body], 0] if model.body_geomnum[body] else 0.0 for body in bodies]
    return bodies, np.array(radius)


def _add_world(mujoco: ModuleType, spec: mujoco.MjSpec, robot: Robot, timestep: float) -> None:
    spec.option.timestep = timestep
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
    spec.option.iterations = 8
    spec.option.ls_iterations = 10
    if spec.geom(FLOOR) is None:
        texture = spec.add_texture(
            name='grid', type=mujoco.mjtTexture.mjTEXTURE_2D, builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
            rgb1=[0.26, 0.29, 0.33], rgb2=[0.32, 0.35, 0.39], width=256, height=256,
        )  # fmt: skip
        material = spec.add_material(name='grid', texrepeat=[1, 1], texuniform=True, reflectance=0.08)
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = texture.name
        spec.worldbody.add_geom(name=FLOOR, type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.05], material='grid')
        spec.worldbody.add_light(pos=[0, 0, 4], dir=[0.2, 0.1, -1], type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL)
    base = spec.worldbody.first_body()
    if robot.floating and not any(joint.type == mujoco.mjtJoint.mjJNT_FREE for joint in base.joints):
        base.add_freejoint(name='base_free')


def _set_joints(mujoco: ModuleType, spec: mujoco.MjSpec, robot: Robot, actuators: str, source: str) -> None:
    hinges = [j for j in spec.joints if j.type in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)]
    JointMap([j.name for j in hinges], robot.joints, source=source, target=f'robot {robot.name}', exact=True)
    figures = robot.simulated()
    for i, name in enumerate(robot.joints):
        joint = spec.joint(name)
        joint.armature = figures.armature[i]
        joint.damping[:] = 0
        joint.damping[0] = figures.joint_damping[i]
        joint.frictionloss = figures.joint_friction[i]
        effort = robot.limits.effort[i]
        joint.actfrcrange = [-effort, effort]
        joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_TRUE
        actuator = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        if actuators == 'position':
            actuator.set_to_position(kp=1.0, kv=0.0)  # kp and kv are written per simulation
        else:
            actuator.set_to_motor()


def _set_contacts(mujoco: ModuleType, spec: mujoco.MjSpec, robot: Robot, collisions: str) -> None:
    for geom in spec.geoms:
        geom.condim = 3
        if geom.name == FLOOR:
            geom.contype, geom.conaffinity, geom.friction[0] = GROUND_BIT, GROUND_BIT, 0.05
            continue
        if geom.contype == 0 and geom.conaffinity == 0:
            continue  # visual
        both = collisions == 'all'
        geom.contype = GROUND_BIT | ROBOT_BIT if both else 0
        geom.conaffinity = GROUND_BIT | ROBOT_BIT if both else GROUND_BIT
        # MuJoCo takes the larger friction of the two geoms: the floor's is low so that the robot's counts
        geom.friction[0] = robot.simulated().foot_friction


def _add_sensors(mujoco: ModuleType, spec: mujoco.MjSpec, robot: Robot) -> None:
    base = spec.worldbody.first_body()
    body = spec.body(robot.sensors.imu_frame) or base
    site = body.add_site(name=IMU)
    for name, kind in (
        ('imu_quat_wxyz', mujoco.mjtSensor.mjSENS_FRAMEQUAT),
        ('imu_gyro', mujoco.mjtSensor.mjSENS_GYRO),
        ('imu_accelerometer', mujoco.mjtSensor.mjSENS_ACCELEROMETER),
    ):
        spec.add_sensor(name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site.name)
