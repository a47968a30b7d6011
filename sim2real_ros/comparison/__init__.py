# SPDX-License-Identifier: Apache-2.0
"""Two recorded runs of one policy side by side: how far apart, how much later, how alike."""
