# SPDX-License-Identifier: Apache-2.0
"""Presets of MuJoCo Playground: joints, keyframe, gains and command ranges of its joystick tasks, from their MJCF and Python.

Gains: kp of the position actuators; the damping is kv of the actuator plus the damping of the joint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ARM = ['shoulder_pitch', 'shoulder_roll', 'shoulder_yaw', 'elbow', 'wrist_roll', 'wrist_pitch', 'wrist_yaw']
LEG = ['hip_pitch', 'hip_roll', 'hip_yaw', 'knee', 'ankle_pitch', 'ankle_roll']
T1_ARM = ['Shoulder_Pitch', 'Shoulder_Roll', 'Elbow_Pitch', 'Elbow_Yaw']
T1_LEG = ['Hip_Pitch', 'Hip_Roll', 'Hip_Yaw', 'Knee_Pitch', 'Ankle_Pitch', 'Ankle_Roll']
APOLLO_ARM = ['shoulder_aa', 'shoulder_ie', 'shoulder_fe', 'elbow_fe', 'wrist_roll', 'wrist_yaw', 'wrist_pitch']
APOLLO_LEG = ['hip_ie', 'hip_aa', 'hip_fe', 'knee_fe', 'ankle_ie', 'ankle_pd']
BERKELEY = ['HR', 'HAA', 'HFE', 'KFE', 'FFE', 'FAA']


@dataclass(frozen=True)
class Preset:
    """A joystick task."""

    robot: str
    joints: Sequence[str]
    pose: Sequence[float]
    stiffness: Sequence[float]
    damping: Sequence[float]
    action_scale: float
    x: float
    y: float
    yaw: float
    where: str
    command_last: bool = False
    gait_hz: float | None = None
    gait_source: str = ''
    stands: bool = False  # both clocks at half a period without a command
    blind: Sequence[str] = ()  # joints whose observation is zeroed

    @property
    def width(self) -> int:
        """Width of the observation."""
        return 12 + 3 * len(self.joints) + (4 if self.gait_hz else 0)


def _both(names: Sequence[str], left: str, right: str, end: str = '') -> list[str]:
    return [f'{side}{name}{end}' for side in (left, right) for name in names]


SIM2SIM = 'mujoco_playground experimental/sim2sim'
PRESETS: dict[str, Preset] = {
    'go1_joystick': Preset(
        'go1',
        [f'{leg}_{part}_joint' for leg in ('FR', 'FL', 'RR', 'RL') for part in ('hip', 'thigh', 'calf')],
        [0.1, 0.9, -1.8, -0.1, 0.9, -1.8] * 2, [35.0] * 12, [0.5] * 12, 0.5, 1.5, 0.8, 1.2,
        f'{SIM2SIM}/play_go1_joystick.py, locomotion/go1/xmls/go1_mjx_feetonly.xml and joystick.py', command_last=True,
    ),
    'berkeley_humanoid_joystick': Preset(
        'berkeley_humanoid', _both(BERKELEY, 'LL_', 'LR_'),
        [-0.071, 0.103, -0.463, 0.983, -0.350, 0.126, 0.071, -0.103, -0.463, 0.983, -0.350, -0.126],
        [*[35.0] * 5, 1.0] * 2, [*[1.5] * 5, 0.1] * 2, 0.5, 1.0, 1.0, 1.0,
        f'{SIM2SIM}/play_bh_joystick.py, locomotion/berkeley_humanoid/xmls', gait_hz=1.5, gait_source='play_bh_joystick.py',
    ),
    'g1_joystick': Preset(
        'g1', [*_both(LEG, 'left_', 'right_', '_joint'), 'waist_yaw_joint', 'waist_roll_joint', 'waist_pitch_joint',
               *_both(ARM, 'left_', 'right_', '_joint')],
        [*[-0.312, 0.0, 0.0, 0.669, -0.363, 0.0] * 2, 0.0, 0.0, 0.073, 0.2, 0.2, 0.0, 0.6, 0.0, 0.0, 0.0,
         0.2, -0.2, 0.0, 0.6, 0.0, 0.0, 0.0],
        [*[75.0, 75.0, 75.0, 75.0, 20.0, 2.0] * 2, *[75.0] * 3, *[75.0, 75.0, 75.0, 75.0, 2.0, 2.0, 2.0] * 2],
        [*[2.0, 2.0, 2.0, 2.0, 1.0, 0.2] * 2, *[2.0] * 3, *[2.0, 2.0, 2.0, 2.0, 0.2, 0.2, 0.2] * 2],
        0.5, 1.0, 0.5, 1.0, f'{SIM2SIM}/play_g1_joystick.py, locomotion/g1/xmls/g1_mjx_feetonly.xml and joystick.py',
        gait_hz=1.5, gait_source='play_g1_joystick.py',
    ),
    't1_joystick': Preset(
        't1', ['AAHead_yaw', 'Head_pitch', *_both(T1_ARM, 'Left_', 'Right_'), 'Waist', *_both(T1_LEG, 'Left_', 'Right_')],
        [0.0, 0.0, 0.0, -1.4, 0.0, -0.4, 0.0, 1.4, 0.0, 0.4, 0.0, *[-0.2, 0.0, 0.0, 0.4, -0.2, 0.0] * 2],
        [*[20.0] * 10, 50.0, *[30.0, 30.0, 30.0, 30.0, 10.0, 10.0] * 2], [*[2.0] * 10, 3.0, *[3.0] * 12],
        1.0, 1.0, 0.8, 1.0, f'{SIM2SIM}/play_t1_joystick.py, locomotion/t1/xmls', gait_hz=1.5,
        gait_source='play_t1_joystick.py', stands=True, blind=('AAHead_yaw', 'Head_pitch'),
    ),
    'apollo_joystick': Preset(
        'apollo', ['torso_yaw', 'torso_roll', 'torso_pitch', 'neck_yaw', 'neck_roll', 'neck_pitch',
                   *_both(APOLLO_ARM, 'l_', 'r_'), *_both(APOLLO_LEG, 'l_', 'r_')],
        [0.0] * 6 + [0.2, 0.0, 0.1, -0.4, 0.0, 0.0, 0.0, -0.2, 0.0, 0.1, -0.4, 0.0, 0.0, 0.0,
                     0.08, 0.1, -0.477, 1.033, -0.03, -0.537, -0.08, -0.1, -0.477, 1.033, 0.03, -0.537],
        [*[200.0] * 3, *[20.0] * 3, *[50.0, 50.0, 50.0, 20.0, 20.0, 20.0, 20.0] * 2,
         *[200.0, 200.0, 200.0, 200.0, 50.0, 50.0] * 2],
        [*[20.0] * 3, *[5.0] * 3, *[5.0, 5.0, 5.0, 2.0, 2.0, 2.0, 2.0], *[5.0, 5.0, 5.0, 2.0, 2.0, 2.0, 12.0],
         *[20.0, 20.0, 20.0, 20.0, 5.0, 5.0] * 2],
        0.5, 1.5, 0.8, 1.5, f'{SIM2SIM}/play_apollo_joystick.py, locomotion/apollo/xmls', gait_hz=1.5,
        gait_source='middle of 1.25 to 1.75 Hz in training (joystick.py); play_apollo_joystick.py varies it with the command',
        stands=True,
    ),
}  # fmt: skip
