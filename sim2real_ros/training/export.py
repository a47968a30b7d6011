# SPDX-License-Identifier: Apache-2.0
"""From a trained runner to a policy folder: ONNX with embedded contract, YAML, golden vectors."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
import yaml
from rsl_rl.runners import OnPolicyRunner

from sim2real_ros.contract import Contract
from sim2real_ros.contract.load import METADATA_KEY
from sim2real_ros.training.velocity_env import VelocityEnv

GOLDEN_TICKS = 64


def export_policy(runner: OnPolicyRunner, env: VelocityEnv, folder: Path, provenance: dict[str, Any]) -> None:
    """Write policy.onnx, policy.yaml and golden.npz.

    Args:
        runner: holds the trained actor.
        env: gives the contract, and observations of walking robots for the golden vectors.
        folder: to write into.
        provenance: for the contract.
    """
    folder.mkdir(parents=True, exist_ok=True)
    document = env.contract.file.model_dump(mode='json', by_alias=True, exclude_none=True)
    document['provenance'] |= provenance
    actor = runner.alg.get_policy().as_onnx(verbose=False).to('cpu').eval()
    golden = _walk(actor, env)
    np.savez_compressed(folder / 'golden.npz', **golden)  # type: ignore[arg-type]
    model = _onnx(actor, env.contract)
    entry = model.metadata_props.add()
    entry.key, entry.value = (
        METADATA_KEY,
        yaml.safe_dump(document | {'golden': None, 'novelty': None}, sort_keys=False),
    )  # one file, nothing beside it
    onnx.checker.check_model(model)
    data = model.SerializeToString()
    (folder / 'policy.onnx').write_bytes(data)
    document['model']['sha256'] = hashlib.sha256(data).hexdigest()
    (folder / 'policy.yaml').write_text(yaml.safe_dump(document, sort_keys=False, width=128), encoding='utf-8')


def _onnx(actor: torch.nn.Module, contract: Contract) -> onnx.ModelProto:
    """Return the network in one piece, with a free batch dimension and without traces of this machine."""
    buffer = io.BytesIO()
    name, output = next(iter(contract.observations)), next(iter(contract.file.outputs))
    torch.onnx.export(
        actor, actor.get_dummy_inputs(), buffer, input_names=[name], output_names=[output], opset_version=17, dynamo=False,
        dynamic_axes={name: {0: 'batch'}, output: {0: 'batch'}},
    )  # fmt: skip
    model = onnx.load_from_string(buffer.getvalue())
    for node in model.graph.node:
        node.doc_string = ''
    return model


def _walk(actor: torch.nn.Module, env: VelocityEnv) -> dict[str, np.ndarray]:
    """Return observations and actions of walking robots, one of each robot and tick until there are enough."""
    name, output = next(iter(env.contract.observations)), next(iter(env.contract.file.outputs))
    inputs, outputs = [], []
    with torch.inference_mode():
        for tick in range(GOLDEN_TICKS):
            observation = env.get_observations()['actor']
            action = actor(observation)
            row = tick % env.num_envs
            inputs.append(observation[row].numpy().copy())
            outputs.append(action[row].numpy().copy())
            env.step(action)
    return {f'in__{name}': np.array(inputs), f'out__{output}': np.array(outputs)}
