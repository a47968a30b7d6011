# SPDX-License-Identifier: Apache-2.0
"""How reports look. Every colour is a variable with a light and a dark value; the figures take them too."""

COLOURS = ('#2f7de1', '#e8743b', '#19a979', '#945ecf', '#d4a017', '#6c8893')  # readable on white and on black

STYLE = """
:root { color-scheme: light dark; --ground: #fff; --raised: #f6f7f9; --ink: #1c2128; --faint: #667080; --line: #e2e5ea;
  --bar: #dbe7fb; --good: #137a4b; --warn: #96690a; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171c; --raised: #1d2229; --ink: #e6e8eb; --faint: #98a2b0;
  --line: #313842; --bar: #24395c; --good: #4cc38a; --warn: #e0b04c; --bad: #ff7b72; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 40px 24px 80px; }
h1 { margin: 0; font-size: 28px; line-height: 1.2; font-weight: 650; letter-spacing: -0.01em; }
h2 { margin: 48px 0 8px; font-size: 19px; font-weight: 650; letter-spacing: -0.005em; }
h3 { margin: 32px 0 6px; font-size: 15px; font-weight: 650; }
p { margin: 6px 0 14px; max-width: 78ch; }
header p, figcaption, caption, dt { color: var(--faint); }
.verdict { margin: 24px 0; padding: 14px 20px; background: var(--raised); border-radius: 8px;
  border-left: 4px solid var(--faint); }
.verdict p { margin: 0; font-size: 17px; font-weight: 600; }
.verdict ul { margin: 8px 0 0; padding-left: 18px; }
.verdict.good { border-color: var(--good); } .verdict.warn { border-color: var(--warn); }
.verdict.bad { border-color: var(--bad); }
.facts { display: flex; flex-wrap: wrap; gap: 12px 40px; margin: 20px 0; }
.facts dt { font-size: 12.5px; } .facts dd { margin: 0; font-size: 17px; font-variant-numeric: tabular-nums; }
.table { overflow-x: auto; margin: 14px 0 26px; }
table { border-collapse: collapse; min-width: 50%; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: 6px; }
th { font-weight: 600; font-size: 13px; color: var(--faint); }
th, td { padding: 5px 14px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 2px; }
td.good { color: var(--good); } td.warn { color: var(--warn); } td.bad { color: var(--bad); }
td.bar { background: linear-gradient(to left, var(--bar) var(--share), transparent 0); }
pre { margin: 6px 0 20px; padding: 8px 12px; overflow-x: auto; background: var(--raised); border-radius: 6px;
  font: 13px/1.5 ui-monospace, "SF Mono", Consolas, "Liberation Mono", monospace; }
.chips { display: flex; flex-wrap: wrap; align-items: baseline; gap: 6px 10px; }
.chips span { color: var(--faint); font-size: 13px; }
.chips ul { display: contents; list-style: none; }
.chips li { padding: 1px 10px; border: 1px solid var(--warn); border-radius: 999px; color: var(--warn); font-size: 13px; }
figure { margin: 14px 0 26px; }
.js-plotly-plot .main-svg > :not(.hoverlayer) text { fill: var(--ink) !important; }
.js-plotly-plot .gridlayer path, .js-plotly-plot .zerolinelayer path { stroke: var(--line) !important; }
.js-plotly-plot .legend .bg { fill: transparent !important; }
@media print { main { max-width: none; padding: 0; } .verdict, figure, tr { break-inside: avoid; } }
"""
