# SPDX-License-Identifier: Apache-2.0
"""Steps of legged_rl_deploy: clip, scale and offset in the order of `process_order`, for a term, an action or a command."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sim2real_ros.contract.importers.sources import Keys, to_number

KINDS = ('clip', 'scale', 'offset')


@dataclass
class Steps:
    """Steps in their order, each with one number or one per element."""

    order: list[str] = field(default_factory=list)
    scale: list[float] = field(default_factory=list)
    offset: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    @staticmethod
    def read(keys: Keys, count: int | None) -> Steps:
        """Read the steps of an entry; without a process_order there is none, whatever else it says."""
        order = keys.data.get('process_order') or []
        steps = Steps()
        if not isinstance(order, list) or any(step not in KINDS for step in order):
            keys.fault('process_order', f'a list of {", ".join(KINDS)} is expected, not {order!r}')
            return steps
        if not order and any(keys.data.get(key) is not None for key in ('scale', 'offset', 'min', 'max')):
            keys.fault(
                'process_order',
                'is missing, so that scale, offset, min and max would be ignored; state the order or remove them',
            )
        steps.order = list(dict.fromkeys(order))
        for step, names in (('scale', ('scale',)), ('offset', ('offset',)), ('clip', ('min', 'max'))):
            if step in steps.order:
                for name in names:
                    setattr(steps, {'min': 'low', 'max': 'high'}.get(name, name), _numbers(keys, name, count))
        return steps

    def apply(self, value: float, i: int) -> float:
        """Return a number after the steps; `i` is its place."""
        for step in self.order:
            if step == 'scale':
                value *= _at(self.scale, i)
            elif step == 'offset':
                value += _at(self.offset, i)
            else:
                value = min(max(value, _at(self.low, i)), _at(self.high, i))
        return value

    def affine(self, i: int) -> tuple[float, float, tuple[float, float] | None, tuple[float, float] | None]:
        """Return scale, offset, bounds of the number itself and bounds of the result of element `i`."""
        scale, offset = 1.0, 0.0
        clip: tuple[float, float] | None = None
        target: tuple[float, float] | None = None
        for step in self.order:
            if step == 'scale':
                scale, offset = scale * _at(self.scale, i), offset * _at(self.scale, i)
            elif step == 'offset':
                offset += _at(self.offset, i)
            elif step == self.order[-1] and len(self.order) > 1:
                target = (_at(self.low, i), _at(self.high, i))
            else:
                bounds = sorted((bound - offset) / scale for bound in (_at(self.low, i), _at(self.high, i)))
                clip = (bounds[0], bounds[1])
        return scale, offset, clip, target

    def target_offset(self, count: int) -> list[float]:
        """Return what the steps make of zero without their clips."""
        return [self.affine(i)[1] for i in range(count)]

    def put(self, use: dict[str, Any], keys: Keys) -> dict[str, Any]:
        """Put the steps into a term of a contract."""
        done = []
        for step in self.order:
            values: Any = self.scale if step == 'scale' else self.offset if step == 'offset' else [self.low, self.high]
            if step == 'clip':
                if any(len(set(side)) > 1 for side in values):
                    keys.fault('min', 'bounds that differ within a term cannot be expressed; split the term')
                    continue
                use['clip'] = [self.low[0], self.high[0]]
            else:
                use[step] = values[0] if len(set(values)) == 1 else list(values)
                if use[step] == {'scale': 1.0, 'offset': 0.0}[step]:
                    del use[step]
                    continue
            done.append(step)
        return use | ({'process': done} if len(done) > 1 else {})


def _numbers(keys: Keys, name: str, count: int | None) -> list[float]:
    """Return one number or `count` of them, as a list."""
    value = keys.data.get(name)
    number = to_number(value)
    if number is not None:
        return [number]
    values = keys.numbers(name)
    if count is not None and len(values) not in (1, count):
        keys.fault(name, f'has {len(values)} numbers, 1 or {count} are expected')
    return values or [0.0]


def _at(values: list[float], i: int) -> float:
    return values[0] if len(values) == 1 else values[i]
