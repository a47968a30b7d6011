# SPDX-License-Identifier: Apache-2.0
"""`sim2real import` as a user types it: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import pytest
import yaml
from foreign_yaml import deploy, gym, legged, sar

from sim2real_ros.tools.cli import main
from sim2real_ros.tools.import_policy import setting_value


def run(capsys, *words):
    """Return exit code, output and errors of a command."""
    code = main([str(word) for word in words])
    return code, *capsys.readouterr()


@pytest.mark.parametrize('make', [deploy, sar, gym, legged])
def test_every_format_is_detected_and_written(make, tmp_path, capsys):
    code, out, _ = run(capsys, 'import', make(tmp_path / 'p'), '-o', tmp_path / 'out')
    assert code == 0
    assert 'assumptions: what the source does not say' in out
    assert 'commands.velocity.timeout_s = 0.5' in out
    assert {path.name for path in (tmp_path / 'out').iterdir()} == {'policy.yaml', 'policy.onnx'}


def test_settings_names_and_robot_are_taken(tmp_path, capsys):
    names = ','.join(f'j{i}' for i in range(12))
    source = gym(tmp_path / 'p', name='mine')
    words = [
        '--joints',
        names,
        '--robot',
        'my_robot',
        '--name',
        'walk',
        '--set',
        'phase.period_s=7e-1',
        '--set',
        'latency={trained_ms: [0, 20]}',
    ]
    code, out, _ = run(capsys, 'import', source, '-o', tmp_path / 'out', *words)
    assert code == 0
    data = yaml.safe_load((tmp_path / 'out' / 'policy.yaml').read_text())
    assert (data['robot'], data['name'], data['phase']['period_s']) == ('my_robot', 'walk', 0.7)
    assert data['latency'] == {'trained_ms': [0.0, 20.0]}
    assert 'phase.period_s = ' not in out
    assert 'robot my_robot: there is no robot file of this name' in ' '.join(out.split())


def test_names_come_from_a_model(tmp_path, capsys):
    model = tmp_path / 'robot.xml'
    joints = ''.join(f'<joint name="m{i}"/>' for i in range(12))
    model.write_text(f'<mujoco><worldbody><body>{joints}</body></worldbody></mujoco>')
    code, out, _ = run(capsys, 'import', gym(tmp_path / 'p', name='mine'), '-o', tmp_path / 'out', '--joints-from', model)
    assert code == 0
    assert ' m11 ' in out


def test_show_prints_the_assumptions_too(tmp_path, capsys):
    assert run(capsys, 'import', gym(tmp_path / 'p'), '-o', tmp_path / 'out')[0] == 0
    code, out, _ = run(capsys, 'show', tmp_path / 'out')
    assert code == 0
    assert 'phase.period_s = 0.8' in out


def test_what_cannot_be_imported_ends_with_one_and_a_reason(tmp_path, capsys):
    code, out, err = run(capsys, 'import', tmp_path, '-o', tmp_path / 'out')
    assert (code, out) == (1, '')
    assert err.startswith('sim2real import: ')
    assert 'is of no format that can be imported' in err
    assert not (tmp_path / 'out').exists()


def test_a_setting_without_a_value_is_refused_at_once(tmp_path, capsys):
    with pytest.raises(SystemExit) as error:
        main(['import', str(tmp_path), '-o', str(tmp_path), '--set', 'phase'])
    assert error.value.code == 2
    assert 'is not of the form path=value' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('text', 'value'),
    [('0.8', 0.8), ('1e-3', 0.001), ('[1, 2]', [1, 2]), ('null', None), ('raw', 'raw'), ('{a: 1}', {'a': 1}), ('true', True)],
)
def test_values_are_yaml(text, value):
    assert setting_value('x', text) == value
