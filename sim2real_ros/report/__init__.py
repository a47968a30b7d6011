# SPDX-License-Identifier: Apache-2.0
"""Reports that a person reads: one self-contained HTML page from verdict, tables and figures."""

from sim2real_ros.report.page import Cell, Page

__all__ = ['Cell', 'Page']
