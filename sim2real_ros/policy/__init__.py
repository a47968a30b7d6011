# SPDX-License-Identifier: Apache-2.0
"""The policy: observation, network and action, one tick at a time."""

from sim2real_ros.policy.runner import PolicyRunner

__all__ = ['PolicyRunner']
