# SPDX-License-Identifier: Apache-2.0
"""Promises of the engine: an episode is the same alone and in any company, and what goes wrong in it is named."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('scipy', reason='the extra `validate` is not installed')
pytest.importorskip('mujoco.batch', reason='validation needs MuJoCo 4')

from makers import make_contract, make_onnx  # noqa: E402
from validation_rig import level, trial  # noqa: E402

from sim2real_ros.contract import load_contract  # noqa: E402
from sim2real_ros.errors import DocumentError, JointError, NetworkError, SignalError  # noqa: E402
from sim2real_ros.policy import runner  # noqa: E402
from sim2real_ros.robot import load_robot  # noqa: E402
from sim2real_ros.validation.draws import width  # noqa: E402
from sim2real_ros.validation.episode import EpisodeId  # noqa: E402
from sim2real_ros.validation.episodes import Trial, run  # noqa: E402
from sim2real_ros.validation.schema import RangesSection  # noqa: E402

MODELS = Path(__file__).resolve().parents[1] / 'models'


@pytest.mark.parametrize('scenario', ['flat', 'slope', 'rough', 'steps'])
def test_an_episode_is_the_same_bit_for_bit_alone_and_in_company(scenario):
    own = trial()
    together = run(own, scenario, [0, 1, 2, 3, 4])
    alone = [run(own, scenario, [index])[0] for index in (0, 3)]
    assert [together[0], together[3]] == alone
    assert run(own, scenario, [3, 9, 0], threads=2)[::2] == alone[::-1]
    assert len({episode.digest for episode in together}) == 5


def test_a_robot_that_falls_ends_its_episode_and_leaves_the_others_alone():
    tripped = {'payload_kg': [0.0, 40.0]}  # some cannot stand
    own = trial(seconds=3.0, ranges=tripped)
    episodes = run(own, 'flat', range(6))
    fallen = [episode for episode in episodes if episode.end_s < 3]
    assert 0 < len(fallen) < 6
    for episode in fallen:
        assert episode.reason == 'fell' or episode.reason.startswith('fault ')
        assert 0 < episode.end_s <= 3
        assert episode.margin < 0
        assert run(own, 'flat', [EpisodeId.parse(episode.id).index]) == [episode]


def test_the_shipped_policy_walks_and_its_figures_say_so():
    episodes = run(trial(seconds=4.0), 'flat', range(8))
    assert all(episode.passed for episode in episodes)
    for episode in episodes:
        assert 0 < episode.margin < 1
        assert episode.figures['tilt_rad'] < 0.5
        assert episode.figures['height_share'] > 0.7
        assert 0.1 < episode.figures['torque_share'] <= 1
        assert episode.figures['altered_share'] < 0.05
    assert max(episode.figures['distance_m'] for episode in episodes) > 0.5


def test_commands_that_are_not_followed_closely_enough_fail():
    strict = level(4.0, success={'tracking_m_s': 0.01, 'tracking_rad_s': 0.01})
    episodes = run(replace(trial(), level=strict), 'flat', range(4))
    assert {episode.reason for episode in episodes} == {'tracking'}
    assert all(episode.margin < 0 for episode in episodes)


def test_too_much_work_for_the_filter_fails():
    own = trial(seconds=4.0)
    strict = own.level.model_copy(update={'success': own.level.success.model_copy(update={'altered_share': 1e-6})})
    assert 'filter' in {episode.reason for episode in run(replace(own, level=strict), 'flat', range(6))}


def test_a_network_that_computes_nan_in_one_world_fails_that_episode_only(monkeypatch):
    own = trial(seconds=1.0)
    ahead = own.draw('flat', range(8)).commands[:, 0, 0]
    network = runner.Network.run

    def nan_where_it_is_asked_to_run(self, observations):
        """What an overflow in a network does: it shows in one region of what the network sees."""
        fast = observations['obs'][..., 6] > 2.0 * (ahead.max() - 1e-3)
        return {name: np.where(fast[..., None], np.nan, values) for name, values in network(self, observations).items()}

    monkeypatch.setattr(runner, 'check_golden', lambda *_: None)
    monkeypatch.setattr(runner.Network, 'run', nan_where_it_is_asked_to_run)
    reasons = [episode.reason for episode in run(own, 'flat', range(8))]
    assert reasons.pop(int(ahead.argmax())) == 'fault network'
    assert reasons == [''] * 7


def test_coordinates_of_a_search_are_obeyed():
    own = trial(seconds=1.0)
    z = np.full((2, width()), 0.5)
    z[1, 1] = 1.0  # payload
    first, second = run(own, 'flat', [0, 0], z=z)
    assert first.draw['payload_kg'] == pytest.approx(1.0)
    assert second.draw['payload_kg'] == pytest.approx(3.0)
    assert first.draw['commands'] == second.draw['commands']
    assert first.digest != second.digest


def arm(tmp_path, *terms):
    """Return the 7-joint arm and a policy of its own that sees its joints and `terms`."""
    robot = load_robot(str(MODELS / 'arm7.yaml'))
    frame = [{'term': 'joint_pos_rel'}, {'term': 'joint_vel'}, *({'term': term} for term in terms)]
    make_onnx(tmp_path / 'policy.onnx', inputs={'obs': 14 + 3 * len(terms)}, outputs={'actions': 7})
    contract = make_contract(
        None, tmp_path / 'policy.onnx', robot='arm7', joints=list(robot.joints), commands={},
        default_position=dict(zip(robot.joints, robot.pose('stand').tolist(), strict=True)),
        inputs={'obs': {'stack': {'lags': [0], 'layout': 'term_major', 'fill': 'first'}, 'terms': frame}},
        stiffness=dict(zip(robot.joints, robot.pose_move.stiffness.tolist(), strict=True)),
        damping=dict(zip(robot.joints, robot.pose_move.damping.tolist(), strict=True)),
        outputs={'actions': {'type': 'joint_position', 'scale': 0.01, 'offset': 'default', 'clip': [-1.0, 1.0]}},
    )  # fmt: skip
    return robot, contract


def test_an_arm_is_validated_without_base_gait_or_pushes(tmp_path):
    gentle = RangesSection(payload_kg=[0.0, 0.5], link_mass_factor=[0.95, 1.05], noise_joint_vel_rad_s=0.01)
    own = Trial.of(level(1.0).model_copy(update={'ranges': gentle}), *arm(tmp_path), 1)
    episodes = run(own, 'flat', range(4))
    assert [episode.reason for episode in episodes] == [''] * 4
    assert episodes[1] == run(own, 'flat', [1])[0]


def test_what_cannot_be_validated_is_refused_before_it_runs(tmp_path):
    go2, walk = load_robot('go2'), load_contract('go2_velocity')
    arm7, reach = arm(tmp_path)
    with pytest.raises(JointError, match='which robot go2 does not have'):
        Trial.of(level(), go2, reach, 1)
    with pytest.raises(SignalError, match='an IMU'):
        Trial.of(level(), *arm(tmp_path, 'projected_gravity'), 1)
    slow = replace(go2, sensors=go2.sensors.model_copy(update={'rate_hz': 40.0}))
    with pytest.raises(DocumentError, match='above the 40 Hz'):
        Trial.of(level(), slow, walk, 1)


def test_a_policy_that_differs_from_its_golden_vectors_is_an_error_not_a_failed_episode(monkeypatch):
    def differ(*_):
        raise NetworkError('differs from its golden vectors')

    monkeypatch.setattr(runner, 'check_golden', differ)
    with pytest.raises(NetworkError, match='golden'):
        Trial.of(level(), load_robot('go2'), load_contract('go2_velocity'), 1)
