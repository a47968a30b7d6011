# SPDX-License-Identifier: Apache-2.0
"""Going on from a policy that was exported before: its weights and normaliser back into an actor of rsl_rl."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from rsl_rl.runners import OnPolicyRunner

from sim2real_ros.errors import ModelFileError

SEEN = 1_000_000  # observations that the normaliser counts as seen: new ones move it slowly


def warm_start(runner: OnPolicyRunner, path: Path) -> None:
    """Put the weights of an exported policy into the actor; the critic begins afresh.

    Args:
        runner: of an actor of the same layers.
        path: ONNX file that `export_policy` wrote.

    Raises:
        ModelFileError: the file holds other layers than the actor.
    """
    actor = runner.alg.get_policy()
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(str(path)).graph.initializer}
    divisor = next((values for name, values in found.items() if name.startswith('onnx::Div')), None)
    own = actor.state_dict()
    wanted = {name: tuple(values.shape) for name, values in own.items() if name.startswith('mlp.')}
    wrong = [f'{name} {shape}' for name, shape in wanted.items() if found.get(name, np.zeros(0)).shape != shape]
    if divisor is None or wrong:
        lacks = ', '.join(wrong) or 'the observation normaliser'
        raise ModelFileError(f'{path} cannot be trained on: it lacks {lacks}; only policies that `sim2real train` wrote can')
    std = torch.from_numpy(divisor.copy()) - actor.obs_normalizer.eps
    weights = {name: torch.from_numpy(found[name].copy()) for name in wanted}
    weights |= {'obs_normalizer._mean': torch.from_numpy(found['obs_normalizer._mean'].copy())}
    weights |= {'obs_normalizer._std': std, 'obs_normalizer._var': std**2}
    weights |= {'obs_normalizer.count': torch.full_like(own['obs_normalizer.count'], SEEN)}
    actor.load_state_dict(own | weights)
