# SPDX-License-Identifier: Apache-2.0
"""Bring a trained ONNX policy to a robot through ROS 2: checked, filtered, the same in simulation and on hardware."""

__version__ = '0.1.0'
