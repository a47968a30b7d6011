# SPDX-License-Identifier: Apache-2.0
"""What one field of a contract says against another. Every fault is noted; nothing raises."""

from __future__ import annotations

from collections import Counter

import numpy as np

from sim2real_ros.contract.inputs import Blocks, Observation, TermUse
from sim2real_ros.contract.schema import Action, ContractFile
from sim2real_ros.contract.tables import action_joints, check_tables

VELOCITY_TERMS = ('velocity_command', 'velocity_command_lin', 'velocity_command_yaw')
PHASE_TERMS = ('phase', 'phase_sin', 'phase_cos')
QUANTITIES = {  # terms of the reference motion: what it must tell for them
    'motion_joint_pos': ('joint_pos',),
    'motion_joint_vel': ('joint_vel',),
    'motion_command': ('joint_pos', 'joint_vel'),
    'motion_anchor_pos_b': ('anchor_pos', 'anchor_quat'),
    'motion_anchor_ori_b': ('anchor_quat',),
}
ANCHOR_TERMS = ('motion_anchor_pos_b', 'motion_anchor_ori_b')


def check_inputs(file: ContractFile, faults: list[str]) -> None:
    """Hold the terms against what they need from the rest of the contract."""
    faults += [f'contacts: {name} occurs {count} times' for name, count in Counter(file.contacts).items() if count > 1]
    uses = term_uses(file)
    if not uses:
        faults.append('inputs: none of them is made of observation terms')
    used = {use.term for use in uses}
    for term in VELOCITY_TERMS:
        if term in used and file.commands.velocity is None:
            faults.append(f'commands.velocity: is missing, but the term {term} is used')
    if 'pose_command' in used and file.commands.pose is None:
        faults.append('commands.pose: is missing, but the term pose_command is used')
    if 'foot_contacts' in used and not file.contacts:
        faults.append('contacts: is missing, but the term foot_contacts is used; name the feet in the order of the policy')
    if any(use.value == 'filtered' for use in uses) and all(action.filter is None for action in file.outputs.values()):
        faults.append('outputs: no action has a filter, but last_action asks for the value filtered')
    _check_phase(file, used, faults)
    _check_motion(file, used, faults)


def term_uses(file: ContractFile) -> list[TermUse]:
    """Return the terms of all inputs."""
    uses: list[TermUse] = []
    for part in file.inputs.values():
        blocks = part.blocks if isinstance(part, Blocks) else [part] if isinstance(part, Observation) else []
        uses += [use for block in blocks for use in block.terms]
    return uses


def _check_phase(file: ContractFile, used: set[str], faults: list[str]) -> None:
    phase = file.phase
    for term in PHASE_TERMS:
        if term not in used:
            continue
        function = term.removeprefix('phase').lstrip('_')
        if phase is None:
            faults.append(f'phase: is missing, but the term {term} is used')
        elif function and function not in phase.encoding:
            faults.append(f'phase.encoding: lacks {function}, but the term {term} is used')
    if phase is None:
        return
    if phase.stop_at_zero_command and file.commands.velocity is None:
        faults.append('phase.stop_at_zero_command: there is no velocity command to be zero')
    if not phase.stop_at_zero_command and (phase.standing_below > 0 or phase.standing_phase is not None):
        faults.append('phase.stop_at_zero_command: is false, so that standing_below and standing_phase mean nothing')


def _check_motion(file: ContractFile, used: set[str], faults: list[str]) -> None:
    motion = file.motion
    for term, quantities in QUANTITIES.items():
        if term not in used:
            continue
        if motion is None:
            faults.append(f'motion: is missing, but the term {term} is used')
            continue
        lacking = [quantity for quantity in quantities if quantity not in motion.quantities]
        if lacking:
            faults.append(f'motion.quantities: lacks {", ".join(lacking)}, which the term {term} needs')
        if term in ANCHOR_TERMS and motion.anchor is None:
            faults.append(f'motion.anchor: is missing, but the term {term} is used')
    if motion is not None and motion.anchor is not None:
        unknown = [joint for joint, _ in motion.anchor.chain if joint not in file.joints]
        if unknown:
            faults.append(f"motion.anchor.chain: {', '.join(unknown)} not among the contract's joints {', '.join(file.joints)}")


def check_actions(file: ContractFile, stiffness: np.ndarray, faults: list[str], literal: bool) -> None:
    """Hold the actions against the joints, the gains and each other."""
    joints = tuple(file.joints)
    driven: Counter[str] = Counter()
    for name, action in file.outputs.items():
        own = action_joints(action, joints)
        driven.update(own)
        unknown = [joint for joint in own if joint not in joints]
        if unknown:
            faults.append(f"outputs.{name}.joints: {', '.join(unknown)} not among the contract's joints {', '.join(joints)}")
        check_tables(name, action, joints, faults, literal)
        stiff = [joint for joint in own if joint in joints and stiffness[joints.index(joint)] > 0]
        if action.type != 'joint_position' and stiff:
            faults.append(
                f'outputs.{name}: a {action.type} action needs stiffness 0 on its joints, not so on {", ".join(stiff)}'
            )
        if action.columns is not None and len(action.columns) != len(own):
            faults.append(f'outputs.{name}.columns: {len(action.columns)} for {len(own)} joints; one each is needed')
        if action.relative_to == 'motion' and (file.motion is None or 'joint_pos' not in file.motion.quantities):
            faults.append(f'outputs.{name}.relative_to: motion, but there is no motion with the quantity joint_pos')
    faults += [f'outputs: {joint} is driven by {count} actions' for joint, count in driven.items() if count > 1]
    idle = [joint for joint in joints if joint not in driven]
    if idle:
        faults.append(f'outputs: no action drives {", ".join(idle)}')
    _check_tensors(file, faults)


def tensor_key(name: str, action: Action) -> str:
    """Return which tensor an action reads: its name, or `#3` where the contract counts."""
    return f'#{action.index}' if action.index is not None else action.tensor or name


def _check_tensors(file: ContractFile, faults: list[str]) -> None:
    keys: dict[str, list[str]] = {}
    for name, action in file.outputs.items():
        keys.setdefault(tensor_key(name, action), []).append(name)
    for key, names in keys.items():
        whole = [name for name in names if file.outputs[name].columns is None]
        if len(names) > 1 and whole:
            faults.append(f'outputs.{whole[0]}: {" and ".join(names)} read the tensor {key}; each must say which columns')
