# SPDX-License-Identifier: Apache-2.0
"""`sim2real schema [contract|robot]`: the JSON schema of a document, for editors and for docs/<document>.schema.json."""

from __future__ import annotations

import argparse
import json

from pydantic import BaseModel

from sim2real_ros.contract.schema import ContractFile
from sim2real_ros.robot.schema import RobotFile

DOCUMENTS: dict[str, type[BaseModel]] = {'contract': ContractFile, 'robot': RobotFile}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('document', nargs='?', choices=list(DOCUMENTS), default='contract', help='which one (default contract)')


def main(arguments: argparse.Namespace) -> int:
    """Print the schema."""
    print(json.dumps(DOCUMENTS[arguments.document].model_json_schema(by_alias=True), indent=2))
    return 0
