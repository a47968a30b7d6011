# SPDX-License-Identifier: Apache-2.0
"""Training: a short run trains, resumes and exports a policy that the stack accepts."""

import numpy as np
import pytest

torch = pytest.importorskip('torch', reason='training needs the extra `train`')
pytest.importorskip('rsl_rl', reason='training needs the extra `train`')
pytest.importorskip('mujoco.batch', reason='training needs MuJoCo 4')

from makers import make_onnx  # noqa: E402

from sim2real_ros.contract import load_contract  # noqa: E402
from sim2real_ros.errors import ModelFileError  # noqa: E402
from sim2real_ros.policy import PolicyRunner  # noqa: E402
from sim2real_ros.signals import RobotState  # noqa: E402
from sim2real_ros.tools import cli  # noqa: E402
from sim2real_ros.training import go2_velocity, rewards  # noqa: E402


@pytest.fixture(scope='module')
def env():
    return go2_velocity.make_environment(size=8, seed=3)


def test_a_short_run_trains_resumes_and_exports_what_the_stack_runs(tmp_path, capsys):
    """Two iterations, then one more from the checkpoint, then the exported file is loaded with its golden vectors."""
    run, policy = tmp_path / 'run', tmp_path / 'policy'
    line = ['train', 'go2_velocity', '--run', str(run), '-o', str(policy), '--environments', '16', '--iterations']
    assert cli.main([*line, '2']) == 0
    assert cli.main([*line, '3']) == 0
    assert cli.main([*line, '1']) == 1
    assert 'already holds' in capsys.readouterr().err
    from_yaml, from_onnx = load_contract(policy), load_contract(policy / 'policy.onnx')
    assert from_yaml.file.model.sha256 == from_onnx.file.model.sha256
    runner = PolicyRunner(from_yaml)
    state = RobotState(0.0, from_yaml.default_position, np.zeros(12), np.array([0, 0, 0, 1.0]), np.zeros(3))
    assert np.isfinite(runner.step(state, np.zeros(3)).position).all()
    assert not list(policy.glob('*.data')), 'one file holds the whole network'


def test_terrain_training_begins_with_the_weights_of_the_policy_it_starts_from(tmp_path):
    shipped = load_contract('go2_velocity')
    env = go2_velocity.make_environment(size=8, seed=3, terrain=True)
    runner = go2_velocity.make_runner(env, None, start=shipped.model_path)
    actor = runner.alg.get_policy().as_onnx(verbose=False).eval()
    observation = env.get_observations()['actor']
    expected = PolicyRunner(shipped, (8,)).network.run({'obs': observation.numpy()})['actions']
    np.testing.assert_allclose(actor(observation).detach().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_a_file_of_other_layers_cannot_be_trained_on(tmp_path, env):
    made = make_onnx(tmp_path / 'policy.onnx')
    with pytest.raises(ModelFileError, match='lacks mlp.0.weight'):
        go2_velocity.make_runner(env, None, start=made.path)


def test_the_environment_observes_what_the_policy_node_would(env):
    """Same builder: the actor sees 47 numbers and its command is where the contract says."""
    observation = env.get_observations()
    assert observation['actor'].shape == (8, 47)
    np.testing.assert_allclose(observation['actor'][:, 6:9].numpy(), env.command * (2, 2, 0.25), rtol=1e-6)


def test_mirroring_twice_changes_nothing(env):
    """The symmetry is an involution on observations and actions."""
    mirror, observation = env.mirror(), env.get_observations()
    action = torch.randn(8, 12)
    once, mirrored = mirror(env, observation, action)
    twice, back = mirror(env, once[8:], mirrored[8:])
    for group in ('actor', 'critic'):
        torch.testing.assert_close(twice[group][8:], observation[group])
    torch.testing.assert_close(back[8:], action)


def test_a_mirrored_robot_is_rewarded_alike(env):
    """Swapping left and right leaves every reward term as it is."""
    rng = np.random.default_rng(0)
    legs, sign = np.array([3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]), np.tile([-1.0, 1, 1], 4)
    joints = {name: rng.normal(size=(5, 12)) for name in JOINT_FIELDS}
    command, lin, ang, gravity = (rng.normal(size=(5, 3)) for _ in range(4))
    feet, foot_vel, phase = rng.uniform(0, 0.1, (5, 4)), rng.normal(size=(5, 4, 3)), rng.uniform(size=5)
    common = {'standing': np.zeros(5, bool), 'height': rng.normal(size=5), 'hips': np.array([0, 3, 6, 9])}
    step = rewards.Step(
        command=command, lin_vel=lin, ang_vel=ang, gravity=gravity, phase=phase, foot_height=feet, foot_vel=foot_vel,
        **joints, **common,
    )  # fmt: skip
    image = rewards.Step(
        command=command * (1, -1, -1), lin_vel=lin * (1, -1, 1), ang_vel=ang * (-1, 1, -1), gravity=gravity * (1, -1, 1),
        phase=(phase + 0.5) % 1, foot_height=feet[:, [1, 0, 3, 2]], foot_vel=(foot_vel * (1, -1, 1))[:, [1, 0, 3, 2]],
        **{name: values[:, legs] * sign for name, values in joints.items()}, **common,
    )  # fmt: skip
    for term in rewards.WEIGHTS:
        np.testing.assert_allclose(term(step), term(image), rtol=1e-9, atol=1e-12, err_msg=term.__name__)


JOINT_FIELDS = ('joint_pos', 'joint_vel', 'joint_acc', 'torque', 'action', 'last_action', 'last_last_action')
