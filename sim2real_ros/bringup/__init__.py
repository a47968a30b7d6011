# SPDX-License-Identifier: Apache-2.0
"""How the stack is started, once, as data. `launch/*.launch.py` and `sim2real run` are two front ends to it."""

from sim2real_ros.bringup.options import Options, defaults, options_from_text
from sim2real_ros.bringup.processes import Process, control, simulation

__all__ = ['Options', 'Process', 'control', 'defaults', 'options_from_text', 'simulation']
