# SPDX-License-Identifier: Apache-2.0
"""The contract: what a policy needs and gives, with nothing left to guess."""

from sim2real_ros.contract.contract import Contract
from sim2real_ros.contract.load import load_contract

__all__ = ['Contract', 'load_contract']
