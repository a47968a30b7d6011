# SPDX-License-Identifier: Apache-2.0
"""Recorded runs: what is recorded, how it is written where there is no `ros2 bag`, and the one reader of all of it."""
