# SPDX-License-Identifier: Apache-2.0
"""For tests that start a launch file for real: they need a ROS 2 with launch, and say what is missing where it is not there."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest
from makers import REPOSITORY

DOMAIN = 120 + os.getpid() % 80


def need(*packages: str) -> None:
    """Skip the module, with the reason, unless launch_testing and some ROS packages are installed."""
    if importlib.util.find_spec('launch_testing') is None:
        pytest.skip('needs a ROS 2 with launch_testing; it is in no wheel', allow_module_level=True)
    prefixes = [Path(part) for part in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if part]
    index = Path('share') / 'ament_index' / 'resource_index' / 'packages'
    missing = [name for name in packages if not any((prefix / index / name).is_file() for prefix in prefixes)]
    if missing:
        pytest.skip(f'needs the ROS packages {", ".join(missing)}', allow_module_level=True)


def description(file: str, **arguments: str):  # noqa: ANN201 - of a package that may be missing
    """Return a launch description for launch_testing that includes one of ours, on a private domain."""
    from launch.actions import IncludeLaunchDescription
    from launch.launch_description_sources import PythonLaunchDescriptionSource
    from launch_testing.actions import ReadyToTest

    from launch import LaunchDescription

    os.environ |= {'ROS_DOMAIN_ID': str(DOMAIN), 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST', 'GZ_PARTITION': f'test{DOMAIN}'}
    source = PythonLaunchDescriptionSource(str(REPOSITORY / 'launch' / file))
    return LaunchDescription([IncludeLaunchDescription(source, launch_arguments=arguments.items()), ReadyToTest()])


class Walks:
    """What every backend must do, with the services that a person would call."""

    walks = True  # a mock does not

    def test_the_robot_is_damped_stands_up_and_follows_the_policy(self) -> None:
        """From the launch to a second of walking."""
        import numpy as np

        from sim2real_ros.ros.operator import Operator

        with Operator() as operator:
            operator.wait(lambda: operator.mode == 'damping', 120, 'the launch did not damp the robot')
            operator.insist('pose', 60)
            if not self.walks:
                return
            operator.insist('activate', 60)
            operator.walk(np.array([0.5, 0.0, 0.0]), 1.0, 120)
            assert operator.mode == 'active'
            operator.insist('damp', 10)
