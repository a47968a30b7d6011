# SPDX-License-Identifier: Apache-2.0
"""Thousands of randomised episodes of a policy through the stages of the nodes, and what may be claimed after them."""
