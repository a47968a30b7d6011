# SPDX-License-Identifier: Apache-2.0
"""What must hold after each step of a start, waited for with a time-out, and why it does not hold, in a sentence."""

from __future__ import annotations

from collections.abc import Callable

from sim2real_ros.errors import RunError
from sim2real_ros.preflight.checks import examine
from sim2real_ros.preflight.finding import Level
from sim2real_ros.ros.operator import Operator
from sim2real_ros.ros.preflight import Look
from sim2real_ros.ros.starting import Start

FLOWING = 10  # commands
SETTLED_S = 1.0  # after the activation: the robot has sunk, or something has tripped
ABOVE = 'its own messages are above'


def simulator(start: Start) -> str:
    """Time goes on."""

    def why_not() -> str:
        """Say what is missing."""
        who = start.publishers(start.clock)
        if not who:
            return f'nobody publishes /clock: ros_gz_bridge did not start; {ABOVE}'
        if not start.clock.messages:
            return f'{who} publishes no time on /clock: Gazebo did not start or crashed, or GZ_PARTITION differs; {ABOVE}'
        return 'time stands still: the simulation is paused; press play, or start Gazebo with -r'

    start.wait(lambda: len(start.clock.stamps) > 1, why_not)
    return 'the simulation runs'


def controller_manager(start: Start) -> str:
    """A controller manager serves."""
    start.watch_time()
    service = f'{start.namespace}/controller_manager/list_controllers'

    def why_not() -> str:
        """Say what is missing."""
        if not start.gazebo:
            return (
                f'no controller manager: there is no service {service}; '
                'start the driver of your robot, or choose hardware:=mock, urdf or the class of your hardware'
            )
        if not start.node.count_publishers('robot_description'):
            return f'robot_description is not published, and Gazebo waits for it: robot_state_publisher ended; {ABOVE}'
        if start.standing():
            return (
                'Gazebo stands still while its plug-in waits for robot_description: '
                'robot_state_publisher must be in the namespace of the plug-in'
            )
        return (
            f'no controller manager inside Gazebo, there is no service {service}: the robot was not spawned, or its plug-in '
            f'was not loaded, as when its name is that of another generation (gazebo:=); {ABOVE}'
        )

    names = start.node.get_service_names_and_types
    start.wait(lambda: any(name == service for name, _ in names()), why_not)
    return 'the controller manager serves'


def sensors(start: Start) -> str:
    """Joint states and IMU arrive, with time that goes on."""
    start.watch_time()
    needed = {'joint_state_broadcaster': start.joints} | ({'imu_sensor_broadcaster': start.imu} if start.robot.floating else {})

    def missing() -> list[str]:
        return [name for name, topic in needed.items() if len(topic.stamps) < 2]

    def why_not() -> str:
        """Say what is missing."""
        reasons = []
        for name in missing():
            topic = needed[name]
            who = start.publishers(topic)
            if not who:
                reasons.append(f'nobody publishes {topic.name}: {name} is not active; the messages of its spawner are above')
            elif not topic.messages:
                reasons.append(f'{who} publishes nothing on {topic.name}')
            else:
                reasons.append(f'{topic.name} repeats one stamp')
        paused = ': the simulation is paused, and nothing can be activated then' if start.gazebo and start.standing() else ''
        return f'{"; ".join(reasons)}{paused}'

    start.wait(lambda: not missing(), why_not)
    return 'the sensors speak'


def armed(start: Start) -> str:
    """Nothing speaks against arming, the safety node damps, and its commands flow: the controller may be activated."""
    findings: list[str] = []

    def passed() -> bool:
        with Look(start.node.get_namespace()) as look:
            seen = examine(look.watch(start.robot, 2.0))
        findings[:] = [f'{finding.check}: {finding.text}' for finding in seen if finding.level is Level.REFUSED]
        return not findings

    start.wait(passed, lambda: f'the robot must not be armed: {"; ".join(findings)}')
    if not start.arm:
        return f'nothing speaks against arming; {start.controller} is inactive, as you asked'
    with Operator(start.namespace) as operator:
        operator.insist('damp', 10)
    before = start.commands.messages
    start.wait(
        lambda: start.commands.messages > before + FLOWING,
        lambda: f'safety_node damps, but no commands arrive on {start.commands.name}',
    )
    return 'safety_node damps and its commands flow'


def active(start: Start) -> str:
    """The controller takes the commands, and the safety node is content."""
    asked = start.can_ask
    states: dict[str, str] | None = None

    def taken() -> bool:
        nonlocal states
        if not asked:  # that it is there is all that can be seen; it listens since it was configured
            return start.controller_listens()
        states = start.controllers()
        return states is not None and states.get(start.controller) == 'active'

    def why_not() -> str:
        """Say what is missing."""
        if asked and states is None:
            return f'controller_manager does not answer, so nobody tells whether {start.controller} is active; {ABOVE}'
        return f'{start.controller} is {(states or {}).get(start.controller, "not loaded")}, not active; {ABOVE}'

    start.wait(taken, why_not)
    with Operator(start.namespace) as operator:
        operator.wait(lambda: bool(operator.mode), 10, 'safety_node announces no mode')
        operator.spin(SETTLED_S)
        if operator.mode in ('off', 'fault'):
            raise RunError(f'safety_node went into the mode {operator.mode} when {start.controller} was activated; {ABOVE}')
        # an operator who has already stood it up is no fault: to end the launch would drop the robot
        doing = 'the robot damps' if operator.mode == 'damping' else f'safety_node is in the mode {operator.mode}'
    unknown = '' if asked else f'; without controller_manager_msgs nobody could be asked whether {start.controller} is active'
    call = f'ros2 service call {start.namespace}/safety_node/pose std_srvs/srv/Trigger'
    return f'{doing}{unknown}. Next: {call}, then activate'


STEPS: dict[str, Callable[[Start], str]] = {
    'simulator': simulator,
    'controller_manager': controller_manager,
    'sensors': sensors,
    'armed': armed,
    'active': active,
}
