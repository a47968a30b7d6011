# SPDX-License-Identifier: Apache-2.0
"""A recorded run held against a contract: where do they differ first, and why."""
