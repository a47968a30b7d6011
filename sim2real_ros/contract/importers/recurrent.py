# SPDX-License-Identifier: Apache-2.0
"""A recurrent TorchScript policy with its state as inputs and outputs.

Trainers of the rsl_rl family export `actor(memory(normalizer(obs)))` with the state of `memory` in buffers. The same parts
are put together anew; whether they fit like that is for the caller to check against the original.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim2real_ros.errors import ModelFileError

if TYPE_CHECKING:
    from torch import Tensor

STATES = ('hidden_state', 'cell_state')
GATES = {4: 'LSTM', 3: 'GRU', 1: 'RNN'}  # rows of the input weight per hidden unit


def find_recurrent(torch: Any, module: Any, path: Path) -> Explicit:
    """Return the module in its explicit form.

    Raises:
        ModelFileError: the parts of a recurrent policy are not there.
    """
    weights = {name: value for name, value in module.state_dict().items() if name.endswith('weight_ih_l0')}
    actor = getattr(module, 'actor', None)
    if len(weights) != 1 or actor is None:
        raise ModelFileError(
            f'{path} keeps recurrent state in buffers, but not as actor(memory(obs)) with one LSTM or GRU; '
            'export ONNX with explicit state in the trainer'
        )
    prefix = next(iter(weights)).removesuffix('weight_ih_l0')
    memory = _memory(torch, module, prefix, path)
    normalizer = getattr(module, 'normalizer', None)
    return _explicit(torch, normalizer, memory, actor)


def _memory(torch: Any, module: Any, prefix: str, path: Path) -> Any:
    """Return a plain recurrent layer with the weights that stand under `prefix`."""
    own = {name.removeprefix(prefix): value for name, value in module.state_dict().items() if name.startswith(prefix)}
    own = {name: value for name, value in own.items() if name.startswith(('weight_', 'bias_'))}
    rows, width = own['weight_ih_l0'].shape
    hidden = own['weight_hh_l0'].shape[1]
    kind = GATES.get(rows // hidden)
    if kind is None or rows % hidden or any('reverse' in name or 'hr' in name for name in own):
        raise ModelFileError(f'{path}: its recurrent layer is none of LSTM, GRU, RNN in one direction without projection')
    layers = sum(name.startswith('weight_ih_l') for name in own)
    memory = getattr(torch.nn, kind)(width, hidden, layers, bias='bias_ih_l0' in own)
    memory.load_state_dict(own)
    return memory.eval()


def _explicit(torch: Any, normalizer: Any, memory: Any, actor: Any) -> Any:
    """Return the scripted module: a trace would not enter the parts, which are scripts themselves."""
    kind = _long_short_term(torch) if memory.mode == 'LSTM' else _gated(torch)
    module = torch.jit.script(kind(normalizer if normalizer is not None else torch.nn.Identity(), memory, actor).eval())
    return Explicit(module, memory, ['h', 'c'] if memory.mode == 'LSTM' else ['h'])


@dataclass(frozen=True)
class Explicit:
    """A recurrent policy `actions, h_out, c_out = module(obs, h_in, c_in)`; without c unless its memory is an LSTM."""

    module: Any
    memory: Any
    cells: list[str]

    @property
    def inputs(self) -> list[str]:
        """Names of the input tensors."""
        return ['obs', *(f'{cell}_in' for cell in self.cells)]

    @property
    def outputs(self) -> list[str]:
        """Names of the output tensors."""
        return ['actions', *(f'{cell}_out' for cell in self.cells)]

    @property
    def state_shape(self) -> tuple[int, int, int]:
        """Shape of each state tensor."""
        return (self.memory.num_layers, 1, self.memory.hidden_size)


def _long_short_term(torch: Any) -> Callable[..., Any]:
    class LongShortTerm(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, normalizer: Any, memory: Any, actor: Any) -> None:
            super().__init__()
            self.normalizer, self.memory, self.actor = normalizer, memory, actor

        def forward(self, obs: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            out, (h, c) = self.memory(self.normalizer(obs).unsqueeze(0), (h, c))
            return self.actor(out.squeeze(0)), h, c

    return LongShortTerm


def _gated(torch: Any) -> Callable[..., Any]:
    class Gated(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, normalizer: Any, memory: Any, actor: Any) -> None:
            super().__init__()
            self.normalizer, self.memory, self.actor = normalizer, memory, actor

        def forward(self, obs: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
            out, h = self.memory(self.normalizer(obs).unsqueeze(0), h)
            return self.actor(out.squeeze(0)), h

    return Gated
