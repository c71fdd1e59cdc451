"""A definition, or a run of it, as a picture for notebooks. All names are strangers' text and are escaped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from . import models

WIDTH, HEIGHT, ACROSS, DOWN = 150, 40, 200, 58
MOST = 200  # more nodes than this are counted, not drawn
COLOURS = {
    "running": "#2b6cb0",
    "retrying": "#b7791f",
    "succeeded": "#2f7d5d",
    "failed": "#c53030",
    "cancelled": "#718096",
    "skipped": "#a0aec0",
}


def columns(ids: list[str], edges: list[tuple[str, str]]) -> dict[str, int]:
    """Each node one column behind the last of those that it waits for. What lies on a circle is left in the first."""
    before: dict[str, set[str]] = defaultdict(set)
    after: dict[str, set[str]] = defaultdict(set)
    for source, target in edges:
        if source in ids and target in ids:
            before[target].add(source)
            after[source].add(target)
    column, ready, waiting = (
        dict.fromkeys(ids, 0),
        [id for id in ids if not before[id]],
        {id: len(before[id]) for id in ids},
    )
    while ready:
        id = ready.pop()
        for target in after[id]:
            column[target] = max(column[target], column[id] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return column


def svg(definition: Mapping[str, Any], states: Mapping[str, str] | None = None) -> str:
    """Nodes from left to right, in the colours of their states."""
    states = states or {}
    nodes = [n for n in definition.get("nodes") or [] if n.get("type", "task") == "task"]
    if not nodes:
        return "<p>No tasks.</p>"
    if len(nodes) > MOST:
        return f"<p>{len(nodes)} tasks, too many to draw here.</p>"
    edges = [(str(e.get("source")), str(e.get("target"))) for e in definition.get("edges") or []]
    column = columns([n["id"] for n in nodes], edges)
    rows: dict[int, int] = defaultdict(int)
    place: dict[str, tuple[int, int]] = {}
    for node in nodes:
        at = column[node["id"]]
        place[node["id"]] = (10 + at * ACROSS, 10 + rows[at] * DOWN)
        rows[at] += 1
    lines = [_edge(place[a], place[b]) for a, b in dict.fromkeys(edges) if a in place and b in place]
    boxes = [_box(place[n["id"]], str(n.get("name") or n["id"]), states.get(n["id"], "")) for n in nodes]
    width, height = 20 + max(column.values()) * ACROSS + WIDTH, 20 + max(rows.values()) * DOWN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">'
    return head + "".join(lines + boxes) + "</svg>"


def _edge(a: tuple[int, int], b: tuple[int, int]) -> str:
    x1, y1, x2, y2 = a[0] + WIDTH, a[1] + HEIGHT // 2, b[0], b[1] + HEIGHT // 2
    middle = (x1 + x2) // 2
    return f'<path d="M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}" fill="none" stroke="#888" stroke-width="1.5"/>'


def _box(at: tuple[int, int], name: str, state: str) -> str:
    colour = COLOURS.get(state, "#888")
    short = name if len(name) <= 20 else name[:19] + "…"
    return (
        f"<g><title>{escape(name)}{': ' + escape(state) if state else ''}</title>"
        f'<rect x="{at[0]}" y="{at[1]}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{colour}" fill-opacity=".15" stroke="{colour}"/>'
        f'<text x="{at[0] + WIDTH // 2}" y="{at[1] + 24}" text-anchor="middle" font-family="sans-serif" font-size="12" '
        f'fill="currentColor">{escape(short)}</text></g>'
    )


def run_html(run: models.RunRow) -> str:
    """A run: how it stands, and its graph."""
    name = f"{escape(run.workflow_name)} #{run.number}"
    facts = [str(run.status), f"{run.progress_percent:.0f} %"]
    if run.duration_ms is not None:
        facts.append(f"{run.duration_ms / 1000:.1f} s")
    error = f'<div style="color:#c53030">{escape(run.error_message)}</div>' if run.error_message else ""
    picture = ""  # a run from a list has no graph
    if isinstance(run, models.Run):
        picture = svg(run.definition.model_dump(mode="json", by_alias=True), {n.id: n.status for n in run.nodes})
    return f'<div style="font-family:sans-serif"><b>{name}</b> {escape(" · ".join(facts))}{error}{picture}</div>'


def runs_html(runs: Sequence[models.RunRow]) -> str:
    """Several runs as a table."""
    rows = [(str(run.number), run.name or "", run.status, run.error_message or "") for run in runs]
    cells = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr><th>run</th><th>name</th><th>status</th><th>error</th></tr>{cells}</table>"
