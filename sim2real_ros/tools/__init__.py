# SPDX-License-Identifier: Apache-2.0
"""The command line `sim2real`, one file per command."""
