# SPDX-License-Identifier: Apache-2.0
"""Timings as ratios within one run: `make bench`."""
