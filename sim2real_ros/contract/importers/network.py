# SPDX-License-Identifier: Apache-2.0
"""Network files: their tensors, the files that hold their weights, and the copy beside the new contract."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from sim2real_ros.contract.importers.draft import Hints
from sim2real_ros.contract.importers.onnx_files import external_files
from sim2real_ros.contract.load import GIT_LFS, read_model
from sim2real_ros.errors import FormatError, ModelFileError

TORCHSCRIPT = ('.pt', '.pth', '.jit')


@dataclass(frozen=True)
class Tensor:
    """An input or output of a network; a free dimension is None."""

    name: str
    shape: tuple[int | None, ...]
    type: str

    @property
    def width(self) -> int | None:
        """Length of the last dimension; None when it is free."""
        return self.shape[-1] if self.shape else 1


@dataclass(frozen=True)
class Tensors:
    """Inputs and outputs of a network, and its metadata."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    metadata: dict[str, str]

    def states(self) -> dict[str, str]:
        """Return the recurrent inputs with the output that each takes: h_in and h_out, hidden_in and hidden_out ..."""
        outputs = {tensor.name: tensor for tensor in self.outputs}
        pairs = {}
        for tensor in self.inputs:
            partner = outputs.get(_partner(tensor.name))
            if partner is not None and partner.name != tensor.name and _alike(tensor.shape, partner.shape):
                pairs[tensor.name] = partner.name
        return pairs

    def state_inputs(self) -> dict[str, dict[str, str]]:
        """Return the recurrent inputs as entries of a contract's `inputs`."""
        return {name: {'state': output, 'initial': 'zeros'} for name, output in self.states().items()}

    def observation(self) -> Tensor:
        """Return the only input that is no recurrent state.

        Raises:
            FormatError: there are several.
        """
        return _single([t for t in self.inputs if t.name not in self.states()], 'input')

    def action(self) -> Tensor:
        """Return the only output that is no recurrent state.

        Raises:
            FormatError: there are several.
        """
        return _single([t for t in self.outputs if t.name not in self.states().values()], 'output')


def tensors(path: Path) -> Tensors:
    """Return what an ONNX file takes and gives.

    Raises:
        ModelFileError: it cannot be opened.
    """
    from sim2real_ros.policy.network import open_session  # noqa: PLC0415 - onnxruntime only where a network is read

    _check_sidecars(path)
    session = open_session(path)
    inputs, outputs = (
        tuple(Tensor(t.name, tuple(d if isinstance(d, int) else None for d in t.shape), t.type) for t in part)
        for part in (session.get_inputs(), session.get_outputs())
    )
    return Tensors(inputs, outputs, dict(session.get_modelmeta().custom_metadata_map))


def as_onnx(path: Path, hints: Hints, width: int | None = None) -> Path:
    """Return an ONNX file: the given one, or what a TorchScript file is converted to.

    Args:
        path: .onnx, or TorchScript (.pt, .pth, .jit).
        hints: its workspace takes the converted file.
        width: length of the observation, where the source states it; TorchScript does not say it.

    Raises:
        ModelFileError: the file is missing, a Git-LFS pointer or of another kind.
        DependencyError: it is TorchScript, and torch is not installed.
    """
    read_model(path)
    if path.suffix == '.onnx':
        return path
    if path.suffix not in TORCHSCRIPT:
        raise ModelFileError(f'{path} is neither ONNX (.onnx) nor TorchScript ({", ".join(TORCHSCRIPT)})')
    from sim2real_ros.contract.importers.torchscript import to_onnx  # noqa: PLC0415 - torch only where it is needed

    return to_onnx(path, hints.workspace / f'{path.stem}.onnx', width)


def copy_network(path: Path, folder: Path) -> str:
    """Copy an ONNX file and the files that hold its weights into a folder; returns its name there, policy.onnx.

    The files of the weights keep their names, since the network names them.
    """
    for name in _check_sidecars(path):
        _copy(path.parent / name, folder / name)
    _copy(path, folder / 'policy.onnx')
    return 'policy.onnx'


def _copy(source: Path, target: Path) -> None:
    if source.resolve() == target.resolve():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _check_sidecars(path: Path) -> list[str]:
    """Return the names of the files beside an ONNX file that hold its weights, each of which is there."""
    names = external_files(read_model(path))
    for name in names:
        if Path(name).is_absolute() or '..' in Path(name).parts:
            raise ModelFileError(f'{path} takes its weights from {name}, outside its own folder: refused')
        side = path.parent / name
        if not side.is_file():
            raise ModelFileError(f'{path} holds the graph only; its weights lie in {name}, which is not beside it: copy both')
        with side.open('rb') as file:
            if file.read(len(GIT_LFS)) == GIT_LFS:
                raise ModelFileError(f'{side} is a Git-LFS pointer, not the weights: run "git lfs pull" where it came from')
    return names


def _partner(name: str) -> str:
    """Return the name of the output that would belong to a recurrent input."""
    if name.endswith('_in'):
        return f'{name[:-3]}_out'
    if name.endswith('_input'):
        return f'{name[:-6]}_output'
    return name.replace('in_', 'out_', 1) if name.startswith('in_') else f'{name}_out'


def _alike(one: tuple[int | None, ...], other: tuple[int | None, ...]) -> bool:
    return len(one) == len(other) and all(a == b or None in (a, b) for a, b in zip(one, other, strict=True))


def _single(found: list[Tensor], kind: str) -> Tensor:
    if len(found) != 1:
        names = ', '.join(f'{t.name} {list(t.shape)}' for t in found) or 'none'
        raise FormatError(f'this format has one {kind} beside recurrent state, the network has {len(found)}: {names}')
    return found[0]
