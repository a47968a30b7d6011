# SPDX-License-Identifier: Apache-2.0
"""Sensors to network input: terms (what), history (when), builder (in which order and scale)."""

from sim2real_ros.observation.builder import ObservationBuilder
from sim2real_ros.observation.moment import Moment

__all__ = ['Moment', 'ObservationBuilder']
