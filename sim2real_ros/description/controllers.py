# SPDX-License-Identifier: Apache-2.0
"""The parameter file of the controllers: two broadcasters and an effort controller whose joints are those of the robot file."""

from __future__ import annotations

from typing import Any

import yaml

from sim2real_ros.description.ros2_control import IMU
from sim2real_ros.robot import Robot

JOINT_STATES, IMU_DATA, EFFORT = 'joint_state_broadcaster', 'imu_sensor_broadcaster', 'effort_controller'
TYPES = {
    JOINT_STATES: 'joint_state_broadcaster/JointStateBroadcaster',
    IMU_DATA: 'imu_sensor_broadcaster/IMUSensorBroadcaster',
    EFFORT: 'forward_command_controller/ForwardCommandController',
}


def broadcasters(robot: Robot) -> tuple[str, ...]:
    """Return the controllers that only publish; they move nothing, so they are active first."""
    return (JOINT_STATES, IMU_DATA) if robot.floating else (JOINT_STATES,)


def controllers(robot: Robot, namespace: str = '', effort: str = EFFORT) -> str:
    """Return the parameter file as YAML text.

    Args:
        robot: gives the joint order of the commands, the rate and the IMU's frame.
        namespace: of the controller manager and its controllers.
        effort: name of the effort controller.
    """
    prefix = f'/{namespace}/' if namespace else ''
    manager: dict[str, Any] = {'update_rate': round(robot.sensors.rate_hz)}
    types = {name: TYPES[name] for name in broadcasters(robot)} | {effort: TYPES[EFFORT]}
    manager |= {name: {'type': kind} for name, kind in types.items()}
    parameters: dict[str, dict[str, Any]] = {'controller_manager': manager}
    # the type again, for a controller manager that does not read this file: the spawner then hands it over
    parameters |= {name: {'type': kind} for name, kind in types.items()}
    if robot.floating:
        parameters[IMU_DATA] |= {'sensor_name': IMU, 'frame_id': robot.sensors.imu_frame}
    parameters[effort] |= {'interface_name': 'effort', 'joints': list(robot.joints)}
    document = {f'{prefix}{node}': {'ros__parameters': values} for node, values in parameters.items()}
    head = f'# Controllers of {robot.name}, made by: sim2real describe {robot.path.stem} --for controllers\n'
    return head + yaml.safe_dump(document, sort_keys=False, width=110)
