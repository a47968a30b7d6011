# SPDX-License-Identifier: Apache-2.0
"""ONNX metadata of whole_body_tracking, mjlab and legged_control2: comma-separated lists, rounded to three decimals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sim2real_ros.contract.importers import isaac_terms, mjlab_motion
from sim2real_ros.contract.importers.draft import Hints, Imported
from sim2real_ros.contract.importers.metadata import Csv, metadata_of, network_of, note_decimals
from sim2real_ros.contract.importers.network import Tensors, tensors
from sim2real_ros.contract.importers.parts import put_velocity
from sim2real_ros.contract.importers.robots import robot_of
from sim2real_ros.contract.importers.tables import by_joint, one_or_table
from sim2real_ros.errors import NotFoundError

NEEDS = 'one ONNX file with the metadata joint_names, joint_stiffness, observation_names (comma-separated)'
KEYS = ('joint_names', 'observation_names', 'joint_stiffness', 'action_scale')
LENGTHS = ('observation_history_lengths', 'observation_terms_history_length', 'observation_history_length')
RANGES = {'x': [-1.0, 1.0], 'y': [-1.0, 1.0], 'yaw': [-0.5, 0.5]}


def detect(source: Path) -> float:
    """Return 1 for an ONNX file, or a folder with one, whose metadata has the keys."""
    found = metadata_of(source)
    mine = all(key in found for key in KEYS) and not found['joint_names'].lstrip().startswith('[')
    return (1.0 if source.is_file() else 0.95) if mine else 0.0  # a deploy.yaml in the folder says more


def read(source: Path, hints: Hints) -> Imported:
    """Return the draft of a policy from its metadata.

    Raises:
        DocumentError: keys are missing or contradict one another; all faults are listed.
    """
    network = network_of(source, hints)
    path = hints.network or (source if source.is_file() else network)
    graph = tensors(network)
    meta = Csv(graph.metadata, str(path))
    joints = meta.names('joint_names')
    n = len(joints)
    tables = {
        'default_position': meta.numbers('default_joint_pos', n),
        'stiffness': meta.numbers('joint_stiffness', n),
        'damping': meta.numbers('joint_damping', n),
    }
    scale = meta.numbers('action_scale', n)
    tracker = mjlab_motion.is_tracker(graph)
    observation = _observation(meta, 'motion' in meta.names('command_names', []) or tracker)
    meta.raise_faults()
    imported = Imported(
        {
            'name': hints.name or path.stem,
            'robot': hints.robot or robot_of(joints),
            'joints': joints,
            **{field: by_joint(joints, values) for field, values in tables.items()},
            'inputs': {},
            'outputs': {},
            'provenance': {'trainer': 'mjlab, whole_body_tracking or legged_control2 (ONNX metadata)'},
        },
        network,
    )
    observations, action = _tensor_names(graph, tracker)
    imported.contract['inputs'][observations] = observation
    imported.contract['outputs'][action] = {
        'type': 'joint_position', 'scale': one_or_table(joints, scale), 'offset': 'default', 'clip': None
    }  # fmt: skip
    imported.contract['inputs'] |= graph.state_inputs()
    _assume(imported, action)
    note_decimals(imported, {**tables, f'outputs.{action}.scale': scale})
    if any(use['term'] == 'velocity_command' for use in observation['terms']):
        put_velocity(imported, RANGES, "the file has no ranges; those of mjlab's velocity task")
    if tracker:
        mjlab_motion.put_motion(imported, graph, meta, hints, joints)
    return imported


def _tensor_names(graph: Tensors, tracker: bool) -> tuple[str, str]:
    if tracker:
        return mjlab_motion.observation_of(graph), mjlab_motion.action_of(graph)
    return graph.observation().name, graph.action().name


def _observation(meta: Csv, motion: bool) -> dict[str, Any]:
    """Return the observation: terms in the order of the file, clip before scale, each with its history."""
    names = meta.names('observation_names')
    lengths = meta.integers(next((key for key in LENGTHS if key in meta.data), LENGTHS[0]), len(names), 1)
    scales = meta.numbers('observation_terms_scale', len(names), [1.0] * len(names))
    clips = meta.clips('observation_terms_clip', len(names))
    if (
        any(not flat for flat in meta.flags('observation_terms_flatten_history_dim', len(names)))
        and max(lengths, default=0) > 1
    ):
        meta.fault('observation_terms_flatten_history_dim', 'a history that is not flattened is no vector; export it flattened')
    terms: list[dict[str, Any]] = []
    for_terms: list[int] = []
    for name, length, scale, clip in zip(names, lengths, scales, clips, strict=True):
        for use in _terms(name, motion, meta):
            isaac_terms.put_clip_scale(use, clip, scale)
            terms.append(use)
            for_terms.append(length)
    return {'stack': isaac_terms.put_histories(terms, for_terms or [1]), 'terms': terms}


def _terms(name: str, motion: bool, meta: Csv) -> list[dict[str, Any]]:
    if name in isaac_terms.COMMAND_KEYS or name in meta.names('command_names', []) or name == 'motion_command':
        return [dict(use) for use in isaac_terms.MOTION] if motion else [{'term': 'velocity_command'}]
    try:
        return isaac_terms.by_key(name)
    except NotFoundError as error:
        meta.fault('observation_names', str(error))
        return []


def _assume(imported: Imported, action: str) -> None:
    """Record what this metadata never says."""
    why = 'not in the metadata; '
    imported.assume('rate_hz', 50, f'{why}both trainers step physics at 5 ms with decimation 4')
    imported.assume(f'outputs.{action}.offset', 'default', f'{why}use_default_offset is true in both trainers', put=False)
    imported.assume(f'outputs.{action}.clip', None, f'{why}neither trainer clips actions by default', put=False)
    for name, part in imported.contract['inputs'].items():
        if 'terms' not in part:
            continue
        for i, use in enumerate(part['terms']):
            if use['term'] == 'joint_pos_rel':
                imported.assume(
                    f'inputs.{name}.terms.{i}.term', 'joint_pos_rel', f'{why}"joint_pos" names joint_pos_rel', put=False
                )
            if use['term'] == 'last_action':
                imported.assume(f'inputs.{name}.terms.{i}.value', 'raw', f'{why}last_action is the raw output', put=False)
        if part['stack']['lags'] != [0] or any('lags' in use for use in part['terms']):
            told = 'term-major, oldest first, filled with the first tick: the circular buffer of Isaac Lab and mjlab'
            imported.assume(f'inputs.{name}.stack', told, f'{why}{told}', put=False)
