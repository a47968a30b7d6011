# SPDX-License-Identifier: Apache-2.0
"""`sim2real schema`: the JSON schema of the contract, for editors and for docs/contract.schema.json."""

from __future__ import annotations

import argparse
import json

from sim2real_ros.contract.schema import ContractFile


def add_arguments(_: argparse.ArgumentParser) -> None:
    """No arguments."""


def main(_: argparse.Namespace) -> int:
    """Print the schema."""
    print(json.dumps(ContractFile.model_json_schema(by_alias=True), indent=2))
    return 0
