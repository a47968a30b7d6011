# SPDX-License-Identifier: Apache-2.0
"""Whether each torque reaches the joint that it is meant for, and with which sign, from how far the joints went.

A torque on one joint moves its neighbours as well, some of them farther than itself, so the joint that moved the most need not
be the one that got the torque. But with the right wiring the response is a mobility matrix, which is positive definite, and for
such a matrix A no assignment has a larger product of |A_ij| than the diagonal, since |A_ij| <= sqrt(A_ii A_jj). So the
assignment with the largest product is the wiring, whatever the couplings and whatever each column was scaled with, and the
sign of its entries is the sign of the motor.
"""

from __future__ import annotations

import numpy as np

from sim2real_ros.preflight.assignment import best_assignment
from sim2real_ros.preflight.finding import Finding, Level

NAME = 'wiring'
MOVED = 0.01  # rad, least of what counts as moved
NOISE = 1e-4  # rad


def wiring_findings(joints: tuple[str, ...], response: np.ndarray) -> list[Finding]:
    """Return what is wrong with the wiring, or that nothing is.

    Args:
        joints: n names.
        response: (n, n) rad; [i, j] is how far joint i went, along its axis, with a positive torque for joint j.
    """
    size = np.abs(response)
    still = [joint for joint, column in zip(joints, size.T, strict=True) if column.max() < MOVED]
    if len(still) == len(joints):
        return [_refused('no torque moved any joint: is the effort controller active, and is power on the motors?')]
    findings = [
        _refused(f'the torque for {joint} moved nothing: is its motor on, or the joint blocked? Let the robot hang')
        for joint in still
    ]
    row_of = np.argsort(best_assignment(np.log(np.maximum(size, NOISE))))  # joint that a torque reaches
    for j, i in enumerate(row_of):
        if joints[j] in still or size[i, j] < MOVED:
            continue
        if i != j:
            findings.append(
                _refused(
                    f'the torque for {joints[j]} moves {joints[i]}: compare `joints` of the effort controller with '
                    'command_joints, then the cables'
                )
            )
        if response[i, j] < 0:
            findings.append(
                _refused(f'the torque for {joints[j]} moves {joints[i]} the wrong way: reverse torque or encoder in its driver')
            )
    moved = f'each of the {len(joints)} torques moves its own joint, and the right way'
    return findings or [Finding(NAME, Level.OK, moved)]


def _refused(text: str) -> Finding:
    return Finding(NAME, Level.REFUSED, text)
