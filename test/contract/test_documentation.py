# SPDX-License-Identifier: Apache-2.0
"""docs/contract.md and docs/contract.schema.json say what the schema says."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from makers import REPOSITORY, contract_data

from sim2real_ros.contract.schema import ContractFile
from sim2real_ros.document import parse_yaml, validate
from sim2real_ros.observation.terms import TERMS

DOCS = REPOSITORY / 'docs'
TEXT = (DOCS / 'contract.md').read_text(encoding='utf-8')
FRAGMENTS = [text for text in re.findall('```yaml\n(.*?)```', TEXT, re.DOTALL) if '[...]' not in text]
SCHEMA = ContractFile.model_json_schema(by_alias=True)


def test_json_schema_in_docs_is_the_one_in_force():
    written = json.loads((DOCS / 'contract.schema.json').read_text(encoding='utf-8'))
    assert written == SCHEMA, 'write it anew: sim2real schema > docs/contract.schema.json'


@pytest.mark.parametrize('term', sorted(TERMS))
def test_every_term_is_documented(term):
    assert f'`{term}`' in TEXT


def test_every_field_is_documented():
    fields = {name for part in (SCHEMA, *SCHEMA['$defs'].values()) for name in part['properties']}
    missing = [name for name in sorted(fields) if not re.search(rf'[`.{{ ]{name}[`.,\[:}}]', TEXT)]
    assert missing == []


@pytest.mark.parametrize('text', FRAGMENTS, ids=[str(i) for i in range(len(FRAGMENTS))])
def test_every_example_is_accepted(text):
    part = parse_yaml(text, 'docs/contract.md')
    if 'terms' in part:
        part = {'inputs': {'obs': part}}
    elif 'inputs' in part and not any('terms' in value or 'blocks' in value for value in part['inputs'].values()):
        part['inputs'] |= contract_data()['inputs']
    validate(ContractFile, contract_data() | part, 'docs/contract.md')


def test_a_wrong_example_would_be_noticed():
    assert len(FRAGMENTS) >= 9
    assert all(isinstance(yaml.safe_load(text), dict) for text in FRAGMENTS)
