# SPDX-License-Identifier: Apache-2.0
"""TorchScript to ONNX."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from foreign import third_party

from sim2real_ros.contract.importers.torchscript import to_onnx
from sim2real_ros.errors import DependencyError, ModelFileError
from sim2real_ros.policy.network import open_session


def recurrent(torch, kind, layers=1):
    """Return an exporter of the rsl_rl family: state in buffers, written in place."""

    class Exporter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.memory = getattr(torch.nn, kind)(5, 6, layers)
            self.actor = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.ELU(), torch.nn.Linear(4, 2))
            self.register_buffer('hidden_state', torch.zeros(layers, 1, 6))
            if kind == 'LSTM':
                self.register_buffer('cell_state', torch.zeros(layers, 1, 6))

        def forward(self, x):
            if kind == 'LSTM':
                out, (h, c) = self.memory(x.unsqueeze(0), (self.hidden_state, self.cell_state))
                self.cell_state[:] = c
            else:
                out, h = self.memory(x.unsqueeze(0), self.hidden_state)
            self.hidden_state[:] = h
            return self.actor(out.squeeze(0))

    torch.manual_seed(0)
    return torch.jit.trace(Exporter().eval(), torch.zeros(1, 5), check_trace=False)


@pytest.mark.parametrize(('kind', 'layers', 'states'), [('LSTM', 1, 2), ('GRU', 2, 1)])
def test_recurrent_state_becomes_inputs_and_outputs(tmp_path, kind, layers, states):
    torch = pytest.importorskip('torch')
    recurrent(torch, kind, layers).save(str(tmp_path / 'p.pt'))
    session = open_session(to_onnx(tmp_path / 'p.pt', tmp_path / 'p.onnx'))
    assert [t.name for t in session.get_inputs()] == ['obs', 'h_in', 'c_in'][: states + 1]
    assert [t.name for t in session.get_outputs()] == ['actions', 'h_out', 'c_out'][: states + 1]
    assert session.get_inputs()[1].shape == [layers, 1, 6]


def test_state_that_is_hidden_elsewhere_is_refused(tmp_path):
    torch = pytest.importorskip('torch')

    class Sum(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 2)
            self.register_buffer('total', torch.zeros(1, 2))

        def forward(self, x):
            self.total[:] = self.total + self.linear(x)
            return self.total.clone()

    torch.jit.trace(Sum(), torch.zeros(1, 3), check_trace=False).save(str(tmp_path / 'p.pt'))
    with pytest.raises(ModelFileError, match='(?s)differs by.*buffers: total|cannot be exported'):
        to_onnx(tmp_path / 'p.pt', tmp_path / 'p.onnx')


def test_without_torch_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'torch', None)
    with pytest.raises(DependencyError, match=r'sim2real_ros\[torch\]'):
        to_onnx(tmp_path / 'p.pt', tmp_path / 'p.onnx')


def test_a_checkpoint_and_a_pointer_are_no_torchscript(tmp_path):
    torch = pytest.importorskip('torch')
    torch.save({'model_state_dict': {'actor.0.weight': torch.zeros(2, 3)}}, tmp_path / 'model_5000.pt')
    with pytest.raises(ModelFileError, match='training checkpoint'):
        to_onnx(tmp_path / 'model_5000.pt', tmp_path / 'p.onnx')
    (tmp_path / 'lfs.pt').write_text('version https://git-lfs.github.com/spec/v1\n')
    with pytest.raises(ModelFileError, match='Git-LFS pointer'):
        to_onnx(tmp_path / 'lfs.pt', tmp_path / 'p.onnx')


REAL = {
    'unitree_rl_gym_g1': ('motion.pt', 'motion.onnx'),
    'rl_sar_go2_robot_lab': ('robot_lab/policy.pt', 'robot_lab/policy.onnx'),
    'rl_sar_go2_himloco': ('himloco/himloco.pt', 'himloco/himloco.onnx'),
    'ur10_reach': ('ur_reach_policy.pt', 'ur_reach_policy.onnx'),
}


@pytest.mark.parametrize('name', REAL)
def test_real_files_compute_what_their_references_compute(tmp_path, name):
    pytest.importorskip('torch')
    script, reference = (third_party(name) / part for part in REAL[name])
    sessions = [open_session(to_onnx(script, tmp_path / 'p.onnx')), open_session(reference)]
    carried = [{}, {}]
    shapes = {t.name: t.shape for t in sessions[0].get_inputs()}
    observation, *states = shapes
    for carry in carried:
        carry.update({state: np.zeros(shapes[state], np.float32) for state in states})
    for row in np.random.default_rng(1).normal(size=(200, *shapes[observation])).astype(np.float32):
        given = [
            session.run(None, {session.get_inputs()[0].name: row, **carry})
            for session, carry in zip(sessions, carried, strict=True)
        ]
        for carry, outputs in zip(carried, given, strict=True):
            carry.update(zip(states, outputs[1:], strict=True))
        assert np.abs(given[0][0] - given[1][0]).max() < 1e-4
