# SPDX-License-Identifier: Apache-2.0
"""The embedded MuJoCo simulator (extra `sim`)."""
