# SPDX-License-Identifier: Apache-2.0
"""The stack on the embedded MuJoCo simulator: ros2 launch sim2real_ros sim.launch.py policy:=go2_velocity headless:=false."""

from launch.actions import DeclareLaunchArgument, EmitEvent, OpaqueFunction
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchContext, LaunchDescription
from sim2real_ros.bringup import defaults, options_from_text, simulation


def start(context: LaunchContext) -> list[Node]:
    """Return the nodes for the given arguments."""
    options = options_from_text({name: LaunchConfiguration(name).perform(context) for name in defaults()})
    return [
        Node(
            package='sim2real_ros',
            executable=process.executable,
            namespace=options.namespace,
            output='screen',
            parameters=[process.parameters, *([options.params_file] if options.params_file else [])],
            arguments=['--ros-args', '--log-level', options.log_level],
            on_exit=[EmitEvent(event=Shutdown(reason=f'{process.executable} ended'))],
        )
        for process in simulation(options)
    ]


def generate_launch_description() -> LaunchDescription:
    """Return the launch description."""
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=text) for name, (default, text) in defaults().items()
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=start)])
