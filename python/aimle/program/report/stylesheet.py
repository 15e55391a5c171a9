"""The style sheet of pages: light or dark as the reader's system, no wider than the window."""

CSS = """
:root { color-scheme: light dark;
  --page: #f6f8fa; --paper: #fff; --ink: #1d2733; --soft: #566574; --line: #e3e8ee;
  --rule: #c4ced8; --accent: #1f6fb2; --best: #e3f4ea; --code: #f0f3f7; --hover: #f3f7fa;
  --chosen: #ffe9a8; --annotated: #188a4b; --warn: #fff6e0; --warn-line: #d99a1e;
  --shadow: rgba(20, 40, 60, .06); }
@media (prefers-color-scheme: dark) { :root {
  --page: #0f141a; --paper: #171d25; --ink: #dde4eb; --soft: #9aa8b6; --line: #2a333e;
  --rule: #465361; --accent: #5aa9e6; --best: #173d2a; --code: #232c37; --hover: #1e2630;
  --chosen: #5c4a10; --annotated: #4cc07e; --warn: #33290f; --warn-line: #b9862a;
  --shadow: rgba(0, 0, 0, .4); } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); overflow-wrap: break-word;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 40px 28px 72px; background: var(--paper);
  min-height: 100vh; box-shadow: 0 0 24px var(--shadow); }
header { border-bottom: 3px solid var(--accent); margin-bottom: 24px; padding-bottom: 12px; }
h1 { font-size: 30px; line-height: 1.2; margin: 0 0 6px; letter-spacing: -.01em; }
header p { margin: 0; color: var(--soft); }
h2 { font-size: 22px; line-height: 1.3; margin: 48px 0 10px; }
h3 { font-size: 18px; line-height: 1.3; margin: 32px 0 8px; }
p { margin: 10px 0; max-width: 84ch; }
a { color: var(--accent); }
code { font: .9em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  background: var(--code); padding: 1px 5px; border-radius: 4px; overflow-wrap: anywhere;
  -webkit-box-decoration-break: clone; box-decoration-break: clone; }
figure { margin: 22px 0; }
figure svg, figure img { max-width: 100%; height: auto; display: block; }
figcaption { color: var(--soft); font-size: 14px; margin-top: 8px; max-width: 96ch; }
.table figcaption { margin: 0 0 8px; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: separate; border-spacing: 0; font-size: 14px; line-height: 20px;
  font-variant-numeric: tabular-nums; }
th, td { padding: 5px 12px; border-bottom: 1px solid var(--line); text-align: right;
  white-space: nowrap; vertical-align: baseline; }
th { border-bottom: 2px solid var(--rule); font-weight: 600; vertical-align: bottom;
  white-space: normal; }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
th:first-child, td:first-child { position: sticky; left: 0; z-index: 1; padding-left: 0;
  background: var(--paper); }
td.long { white-space: normal; min-width: 26ch; max-width: 60ch; }
.pad { visibility: hidden; user-select: none; }
td.best { background: var(--best); font-weight: 600; }
tr.note td { position: static; white-space: normal; text-align: left; padding: 0; }
tr.note div { position: sticky; left: 0; max-width: min(1064px, 100vw - 56px); padding: 8px 12px;
  background: var(--warn); border-left: 3px solid var(--warn-line); }
tbody tr:hover td { background: var(--hover); }
tbody tr:hover .pad { visibility: hidden; user-select: none; }
td.best { background: var(--best); }
details { margin: 18px 0; border: 1px solid var(--line); border-radius: 6px; padding: 0 16px; }
details + details { margin-top: -8px; }
details[open] { padding-bottom: 8px; }
details > figure:first-of-type { margin-top: 4px; }
summary { cursor: pointer; font-weight: 600; padding: 10px 0; }
.missing { background: var(--warn); border-left: 3px solid var(--warn-line); margin: 18px 0;
  padding: 10px 16px; font-size: 15px; }
.missing ul { margin: 6px 0 0; padding-left: 20px; }
.words { font-size: 15px; line-height: 1.8; margin: 18px 0; max-width: 96ch; }
.words .chosen { background: var(--chosen); border-radius: 4px; padding: 1px 3px; }
.words .annotated { border-bottom: 2px solid var(--annotated); }
.words p { color: var(--soft); font-size: 14px; margin: 4px 0 0; }
footer { margin-top: 48px; border-top: 1px solid var(--line); padding-top: 12px;
  color: var(--soft); font-size: 13px; }
@media (prefers-color-scheme: dark) {
  figure svg { filter: invert(.91) hue-rotate(180deg); } }
@media (max-width: 700px) {
  main { padding: 24px 16px 48px; }
  h1 { font-size: 24px; }
  h2 { font-size: 20px; margin-top: 36px; }
  .drawing svg { max-width: none; width: max(100%, 660px); }
  th, td { padding: 5px 8px; }
  th:first-child, td:first-child { white-space: normal; min-width: 110px; max-width: 42vw; }
  tr.note div { max-width: calc(100vw - 32px); }
  details { padding: 0 10px; } }
@media print {
  main { max-width: none; box-shadow: none; padding: 0; }
  .scroll { overflow: visible; } }
"""
