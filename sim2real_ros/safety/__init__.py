# SPDX-License-Identifier: Apache-2.0
"""What may stop a torque. Depends on numpy alone: no policy, however broken, can take it down."""

from sim2real_ros.safety.filter import SafetyFilter
from sim2real_ros.safety.modes import Mode

__all__ = ['Mode', 'SafetyFilter']
