# SPDX-License-Identifier: Apache-2.0
"""From a cause to the contract that would not have it: each change is a document and the lines in which it differs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.parity.explain import Cause, same
from sim2real_ros.parity.finding import Change

QUATERNIONS = {'base_quat_wxyz': 'base_quat_xyzw', 'base_quat_xyzw': 'base_quat_wxyz'}
POSITIONS = {'joint_pos': 'joint_pos_rel', 'joint_pos_rel': 'joint_pos'}
POSE_RAD = 1e-5  # below which a pose is the same
JOINT_TERMS = ('joint_pos', 'joint_pos_rel', 'joint_vel', 'last_action')
LAST_ACTIONS = {
    'raw': 'as the network gave it',
    'clipped': 'after its clip',
    'filtered': 'after its clip and filter',
}


def document_of(contract: Contract) -> dict[str, Any]:
    """Return a contract as YAML would say it: without what is null, but for what must be stated."""
    document = contract.file.model_dump(mode='json', by_alias=True, exclude_none=True)
    for action in document['outputs'].values():
        action.setdefault('clip', None)
    return document


def of_whole_input(part: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield changes of a whole input: history and the order of clip and scale."""
    stack = part['stack']
    for shift in (-1, 1):
        lags = [lag + shift for lag in stack['lags']]
        if min(lags) >= 0:
            what = 'what was measured a tick earlier' if shift > 0 else 'what is measured a tick later'
            yield f'stack.lags: {lags}', f'the trainer feeds {what}', {**part, 'stack': {**stack, 'lags': lags}}
    if len(stack['lags']) > 1:
        other = {'term_major': 'frame_major', 'frame_major': 'term_major'}[stack['layout']]
        turned = {**stack, 'lags': stack['lags'][::-1]}
        refilled = {**stack, 'fill': {'first': 'zeros', 'zeros': 'first'}[stack['fill']]}
        first = 'newest' if turned['lags'][0] < turned['lags'][-1] else 'oldest'
        yield f'stack.lags: {turned["lags"]}', f'the history is the other way round: {first} first', {**part, 'stack': turned}
        yield f'stack.layout: {other}', f'the history is laid out {other}', {**part, 'stack': {**stack, 'layout': other}}
        both = {**turned, 'layout': other}
        yield f'stack: {both}', f'the history is laid out {other}, {first} first', {**part, 'stack': both}
        yield f'stack.fill: {refilled["fill"]}', f'the history begins with {refilled["fill"]}', {**part, 'stack': refilled}
    for i, use in enumerate(part['terms']):
        if len(use.get('process') or []) > 1:
            process = use['process'][::-1]
            terms = [*part['terms'][:i], {**use, 'process': process}, *part['terms'][i + 1 :]]
            sentence = f'{use["term"]}: the order is {" then ".join(process)}'
            yield f'terms.{i}.process: {process}', sentence, {**part, 'terms': terms}


def of_contract(document: dict[str, Any], name: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield changes of what the contract states once for all of an input: quaternions, the clock, which last action."""
    for section, what in ((['commands', 'pose'], 'goal'), (['motion'], 'reference motion')):
        if _stated(document, section):
            other = {'wxyz': 'xyzw', 'xyzw': 'wxyz'}[value_at(document, section)['quaternion']]
            yield _one(document, [*section, 'quaternion'], other, f'the quaternion of the {what} is {other}')
    if _stated(document, ['motion']):
        aligned = not document['motion']['align_heading']
        how = 'counts from' if aligned else 'does not count from'
        yield _one(document, ['motion', 'align_heading'], aligned, f'the heading {how} that of the start')
    if _stated(document, ['phase']):
        phase = document['phase']
        first = 1 - phase['first_tick']
        when = 'before' if first else 'after'
        yield _one(document, ['phase', 'first_tick'], first, f'the gait clock advances {when} the observation of a tick')
        for key, what in (('encoding', 'functions'), ('offsets', 'offsets')):
            turned = phase[key][::-1]
            if turned != phase[key]:
                yield _one(document, ['phase', key], turned, f'the {what} of the gait clock are in another order: {turned}')
    for b, block in enumerate(document['inputs'][name].get('blocks', [document['inputs'][name]])):
        inner = ['blocks', b] if 'blocks' in document['inputs'][name] else []
        for i, use in enumerate(block['terms']):
            if use['term'] == 'last_action':
                for value in LAST_ACTIONS.keys() - {use.get('value', 'raw')}:
                    sentence = f'the trainer feeds the last action {LAST_ACTIONS[value]}'
                    yield _one(document, ['inputs', name, *inner, 'terms', i, 'value'], value, sentence)


def of_period(document: dict[str, Any], clock: np.ndarray, period_s: float) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield changes of the gait clock's period to what the trainer's numbers (k, p) repeat with; `period_s` is of a tick."""
    inner = clock[1:-1]
    power = float((inner * inner).sum())
    if len(clock) < 3 or power == 0 or not _stated(document, ['phase']):
        return
    double_cosine = float(((clock[2:] + clock[:-2]) * inner).sum()) / power  # x(k + 1) + x(k - 1) = 2 cos(w) x(k)
    turn = float(np.arccos(np.clip(0.5 * double_cosine, -1.0, 1.0)))
    for digits in (2, 3, 4, 5, 6) if turn > 0 else ():
        period = round(2 * np.pi / turn * period_s, digits)
        if period > 0 and period != document['phase']['period_s']:
            yield _one(document, ['phase', 'period_s'], period, f'the period of the gait clock is {period:g} s')


def _stated(document: dict[str, Any], path: list[Any]) -> bool:
    for key in path:
        document = document.get(key) or {}
    return bool(document)


def _one(document: dict[str, Any], path: list[Any], value: Any, sentence: str) -> tuple[str, str, dict[str, Any]]:
    return f'{".".join(map(str, path))}: {value}', sentence, with_value(document, path, value)


def with_a_name(contract: Contract, document: dict[str, Any], path: list[Any], cause: Cause) -> tuple[str, Change] | None:
    """Return sentence and change for causes that have a name of their own; `path` leads to the term."""
    use, place = value_at(document, path), '.'.join(map(str, path))
    term = use['term']
    if cause.kind == 'order' and term in JOINT_TERMS and not use.get('joints') and len(cause.value) == len(contract.joints):
        joints = [contract.joints[j] for j in cause.value]
        sentence = f'the joints are in another order: {", ".join(joints)}'
        return sentence, Change(with_value(document, ['joints'], joints), [f'joints: {", ".join(joints)}'])
    if cause.kind == 'scale' and term == 'last_action':
        return _scaled_action(contract, document, path, np.asarray(cause.value))
    if cause.kind == 'order' and term in QUATERNIONS:
        other = QUATERNIONS[term]
        return f'the quaternion is {other[-4:]}', Change(
            with_value(document, [*path, 'term'], other), [f'{place}.term: {other}']
        )
    if cause.kind == 'offset' and term in POSITIONS and use.get('scale', 1.0) == 1.0:
        sign = -1 if term == 'joint_pos' else 1
        if same(np.atleast_2d(cause.value), np.atleast_2d(sign * contract.default_position)):
            other = POSITIONS[term]
            how = 'less the default pose' if other == 'joint_pos_rel' else 'as they are, not less the default pose'
            change = Change(with_value(document, [*path, 'term'], other), [f'{place}.term: {other}'])
            return f'the trainer feeds joint positions {how}', change
        if term == 'joint_pos_rel' and not use.get('joints'):
            return _other_pose(contract, document, np.asarray(cause.value))
    return None


def _other_pose(contract: Contract, document: dict[str, Any], added: np.ndarray) -> tuple[str, Change]:
    pose = dict(zip(contract.joints, np.round(contract.default_position - added, 6).tolist(), strict=True))
    other = [joint for joint, more in zip(contract.joints, added, strict=True) if abs(more) > POSE_RAD]
    said = [f'default_position.{joint}: {pose[joint]:g}' for joint in other]
    text = ', '.join(f'{joint} {pose[joint]:g}' for joint in other)
    merged = {**document['default_position'], **{joint: pose[joint] for joint in other}}
    return f'the default pose is another one: {text}', Change(with_value(document, ['default_position'], merged), said)


def _scaled_action(
    contract: Contract, document: dict[str, Any], path: list[Any], factor: np.ndarray
) -> tuple[str, Change] | None:
    """Return sentence and change where the last action is fed scaled for the joints, or is not."""
    use, place = dict(value_at(document, path)), '.'.join(map(str, path))
    for_joints = np.concatenate([
        [action.scale[joint] if isinstance(action.scale, dict) else action.scale for joint in contract.action_joints(action)]
        for action in contract.file.outputs.values()
    ])  # fmt: skip
    if np.allclose(factor * for_joints, 1.0, rtol=1e-4):
        sentence = 'the trainer feeds the raw action, the contract the one that is scaled for the joints'
        use['scale'] = 1.0
    elif np.allclose(factor, for_joints, rtol=1e-4):
        sentence = 'the trainer feeds the action scaled for the joints, the contract the raw one'
        use['scale'] = np.round(for_joints * use.get('scale', 1.0), 6).tolist()
    else:
        return None
    return sentence, Change(with_value(document, path, use), [f'{place}.scale: {use["scale"]}'])


def of_term(document: dict[str, Any], path: list[Any], cause: Cause) -> Change | None:
    """Return the change of a term's own fields, or None where no field can say it; `path` leads to the term."""
    use, place = dict(value_at(document, path)), '.'.join(map(str, path))
    said = []
    if cause.kind in ('scale', 'zeros'):
        use['scale'] = six_digits(np.asarray(use.get('scale', 1.0)) * np.asarray(cause.value))
        said = [f'{place}.scale: {use["scale"]}']
    elif cause.kind == 'offset':
        use['offset'] = cause.value
        use['process'] = [*(use.get('process') or [step for step in ('scale',) if use.get('scale', 1.0) != 1.0]), 'offset']
        said = [f'{place}.offset: {use["offset"]}']
    elif cause.kind == 'normaliser':
        scale, offset = cause.value
        use['scale'] = (np.asarray(use.get('scale', 1.0)) * np.asarray(scale)).tolist()
        use['offset'], use['process'] = offset, ['scale', 'offset']
        said = [f'{place}.scale: {use["scale"]}', f'{place}.offset: {offset}']
    elif cause.kind == 'clip':
        use['clip'] = [-cause.value, cause.value]
        use['process'] = ['scale', 'clip'] if use.get('scale', 1.0) != 1.0 else None
        said = [f'{place}.clip: {use["clip"]}']
    elif cause.kind == 'delay':
        use['lags'] = [lag + cause.value for lag in use.get('lags') or value_at(document, path[:-2])['stack']['lags']]
        said = [f'{place}.lags: {use["lags"]}']
    else:
        return None
    return Change(with_value(document, path, use), said)


def of_targets(contract: Contract, document: dict[str, Any], cause: Cause | None) -> Iterator[tuple[str, Change]]:
    """Yield changes of the outputs: no clip, and the scale that a cause tells, in the contract's joint order."""
    for name, action in contract.file.outputs.items():
        if action.clip is not None:
            change = Change(with_value(document, ['outputs', name, 'clip'], None), [f'outputs.{name}.clip: null'])
            yield f'the contract clips {name} where the trainer does not', change
    if cause is not None and cause.kind == 'scale' and len(contract.file.outputs) == 1:
        (name, action), factors = next(iter(contract.file.outputs.items())), np.broadcast_to(cause.value, len(contract.joints))
        scale = {
            joint: six_digits((action.scale[joint] if isinstance(action.scale, dict) else action.scale) * factor)
            for joint, factor in zip(contract.joints, factors, strict=True)
        }
        path = ['outputs', name, 'scale']
        yield (
            f'scale of the action: {cause.sentence}',
            Change(with_value(document, path, scale), [f'{".".join(path)}: {scale}']),
        )


def six_digits(values: Any) -> Any:
    """Return numbers as a person would write them: a scale that was found is right to about seven digits."""
    rounded = [float(f'{value:.6g}') for value in np.ravel(values)]
    return rounded[0] if np.ndim(values) == 0 else rounded


def value_at(document: dict[str, Any], path: list[Any]) -> Any:
    """Return what a document says at a path."""
    for key in path:
        document = document[key]
    return document


def with_value(document: dict[str, Any], path: list[Any], value: Any) -> dict[str, Any]:
    """Return a document with another value at a path."""
    changed = copy.deepcopy(document)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed
