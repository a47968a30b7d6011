# SPDX-License-Identifier: Apache-2.0
"""Package of the sim2real deployment stack; works with pip and with colcon (ament_python)."""

from pathlib import Path

from setuptools import find_packages, setup

NAME = 'sim2real_ros'
NODES = (
    'policy_node', 'safety_node', 'watchdog_node', 'mujoco_node', 'preflight_node', 'recorder_node', 'bringup_check',
    'joy_operator',
)  # fmt: skip
MESSAGES = (
    'builtin-interfaces', 'diagnostic-msgs', 'geometry-msgs', 'lifecycle-msgs', 'nav-msgs', 'rcl-interfaces', 'rosgraph-msgs',
    'sensor-msgs', 'std-msgs', 'std-srvs',
)  # fmt: skip


def data(folder: str) -> list[tuple[str, list[str]]]:
    """Return the files under a folder, by their place under share/."""
    groups: dict[str, list[str]] = {}
    for path in sorted(Path(folder).rglob('*')):
        if path.is_file() and '__pycache__' not in path.parts:
            groups.setdefault(f'share/{NAME}/{path.parent}', []).append(str(path))
    return list(groups.items())


setup(
    name=NAME,
    version='0.1.0',
    packages=find_packages(include=[NAME, f'{NAME}.*']),
    package_data={NAME: ['py.typed']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (f'share/{NAME}', ['package.xml']),
        *(group for folder in ('launch', 'config', 'policies', 'urdf') for group in data(folder)),
    ],
    python_requires='>=3.10',
    install_requires=[
        'numpy>=1.26',
        'onnxruntime>=1.17',
        'pydantic>=2.5',
        'pyyaml>=6.0',
        'rich>=13',
        'transforms3d>=0.4.2',
    ],
    extras_require={
        # for machines without ROS 2; not needed, and not wanted, where ROS 2 is installed
        'ros': ['ros-jazzy-rclpy[fastrtps]', *(f'ros-jazzy-{name}' for name in MESSAGES)],
        'sim': ['mujoco>=3.3.5'],
        # to read recordings, and to make them where there is no `ros2 bag`
        'record': ['rosbags>=0.11'],
        # figures in HTML reports
        'report': ['plotly>=5.18'],
        # to import policies in TorchScript
        'torch': ['torch>=2.2', 'onnx>=1.16'],
        'validate': [
            'mujoco>=4.0; python_version >= "3.11"',
            'scipy>=1.15',
            'joblib>=1.4',
            'plotly>=6',
            'cma>=3.3',
            'onnx>=1.16',
            'pillow>=10',
        ],
        # clusters for `sim2real validate --scheduler`
        'dask': ['distributed>=2024.1'],
        'ray': ['ray[client]>=2.9'],
        'train': [
            'mujoco>=4.0; python_version >= "3.11"',
            'torch==2.13.0',
            'rsl-rl-lib>=5.5,<6',
            'onnx>=1.16',
            'onnxscript',
            'tensorboard',
        ],
        'test': [
            'pytest<9',
            'pytest-timeout',
            'pytest-xdist',
            'hypothesis',
            'onnx>=1.16',
            'plotly>=5.18',
            'rosbags>=0.11',
            'ruff',
            'mypy',
            'types-PyYAML',
        ],
    },
    zip_safe=False,
    maintainer='sim2real_ros developers',
    maintainer_email='maintainers@sim2real-ros.dev',
    description='Deployment of trained robot policies: the same ROS 2 nodes on MuJoCo, Gazebo and hardware.',
    license='Apache-2.0',
    entry_points={
        'console_scripts': [
            'sim2real = sim2real_ros.tools.cli:main',
            *(f'{node} = {NAME}.ros.{node}:main' for node in NODES),
        ],
    },
)
