# SPDX-License-Identifier: Apache-2.0
"""Network output to joint targets (decode), joint targets to torque (pd)."""
