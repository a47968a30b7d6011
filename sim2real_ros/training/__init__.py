# SPDX-License-Identifier: Apache-2.0
"""Training of the shipped policies: rsl_rl's PPO on batched MuJoCo (extra `train`, Python 3.11 or newer)."""
