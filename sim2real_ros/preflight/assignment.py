# SPDX-License-Identifier: Apache-2.0
"""The assignment of rows to columns with the largest sum: the Hungarian method with potentials, O(n^3).

It is ours, although scipy.optimize.linear_sum_assignment does the same, because the pre-flight runs on the robot's own computer
and must not lack a check there: the core has no scipy. Trying all permutations ends at about eight joints.
"""

from __future__ import annotations

import numpy as np


def best_assignment(weight: np.ndarray) -> list[int]:
    """Return the column of each row such that no column occurs twice and the weights (n, n), all finite, sum to the most."""
    n = len(weight)
    cost = np.zeros((n + 1, n + 1))
    cost[1:, 1:] = weight.max() - weight
    of_row, of_column = np.zeros(n + 1), np.zeros(n + 1)  # potentials; index 0 is a helper
    row_of = np.zeros(n + 1, int)
    for row in range(1, n + 1):
        row_of[0], column = row, 0
        slack, before, used = np.full(n + 1, np.inf), np.zeros(n + 1, int), np.zeros(n + 1, bool)
        while row_of[column]:  # grow the tree until it meets a column that is free
            used[column] = True
            reduced = cost[row_of[column]] - of_row[row_of[column]] - of_column
            better = ~used & (reduced < slack)
            better[0] = False
            slack[better], before[better] = reduced[better], column
            least = np.where(used, np.inf, slack)
            least[0] = np.inf
            following = int(least.argmin())
            step = least[following]
            of_row[row_of[used]] += step
            of_column[used] -= step
            slack[~used] -= step
            column = following
        while column:  # exchange along the way that led there
            row_of[column], column = row_of[before[column]], before[column]
    columns = [0] * n
    for column in range(1, n + 1):
        columns[row_of[column] - 1] = column - 1
    return columns
