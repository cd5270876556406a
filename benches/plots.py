#!/usr/bin/env python3
"""Draws the tables of benches/results that docs/benchmarks.md shows as pictures, into docs/plots.

    benches/plots.py            writes the pictures
    benches/plots.py --check    fails if one of them does not show what its table says now
"""

import math
import pathlib
import re
import sys
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
STYLE = (
    "text{font:13px sans-serif;fill:#222}.dim{fill:#666}.axis{stroke:#bbb}.line{fill:none;stroke-width:2}"
    ".a{fill:#1f6feb;stroke:#1f6feb}.b{fill:#c9a227;stroke:#c9a227}.c{fill:#2e8b57;stroke:#2e8b57}"
    ".d{fill:#b03060;stroke:#b03060}.e{fill:#7a5cc0;stroke:#7a5cc0}.ground{fill:#fff}"
    "text.a,text.b,text.c,text.d,text.e{stroke:none}.line.a,.line.b,.line.c,.line.d,.line.e{fill:none}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.dim{fill:#999}.axis{stroke:#444}.ground{fill:#1b1b1b}}"
)
SHADES = "abcde"


def tables(name):
    """The tables of a page: a list of rows, each a list of cells, the header first."""
    found, rows = [], []
    for line in (ROOT / "benches/results" / name).read_text(encoding="utf-8").splitlines() + [""]:
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
                rows.append(cells)
        elif rows:
            found.append(rows)
            rows = []
    return found


def number(cell):
    """The first number of a cell, or None."""
    found = re.match(r"[\d.,]*\d", cell)
    return float(found.group().replace(",", "")) if found else None


def frame(width, height, title, body):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n"
        f'<rect class="ground" width="{width}" height="{height}"/>\n'
        f'<text x="16" y="24" font-weight="bold">{escape(title)}</text>\n' + "\n".join(body) + "\n</svg>\n"
    )


def bars(title, series, rows, unit):
    """Horizontal bars: rows of a label and a value for each series; None has no bar."""
    left, width, right = 330, 860, 90
    most = max(value for _, values in rows for value in values if value is not None)
    body, y = [], 40
    for i, name in enumerate(series if len(series) > 1 else []):
        body.append(f'<rect class="{SHADES[i]}" x="{left + 190 * i}" y="{y}" width="12" height="12"/>')
        body.append(f'<text x="{left + 190 * i + 18}" y="{y + 11}">{escape(name)}</text>')
    y += 26 if len(series) > 1 else 4
    for label, values in rows:
        height = 16 * len(values)
        body.append(f'<text x="{left - 10}" y="{y + height / 2 + 5:.0f}" text-anchor="end">{escape(label)}</text>')
        for i, value in enumerate(values):
            if value is not None:
                length = max(1, (width - left - right) * value / most)
                body.append(f'<rect class="{SHADES[i]}" x="{left}" y="{y + 2}" width="{length:.1f}" height="12"/>')
                body.append(f'<text class="dim" x="{left + length + 6:.1f}" y="{y + 12}">{value:g}{unit}</text>')
            y += 16
        y += 8
    return frame(width, y + 8, title, body)


def lines(title, series, across, up):
    """Lines over two logarithmic axes: series of a name and points."""
    left, top, width, height, right = 70, 50, 860, 420, 190
    xs = [x for _, points in series for x, _ in points]
    ys = [y for _, points in series for _, y in points]
    decades = lambda values: (math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))))
    (x0, x1), (y0, y1) = decades(xs), decades(ys)
    place = lambda value, low, high, begin, end: begin + (math.log10(value) - low) / (high - low) * (end - begin)
    px = lambda x: place(x, x0, x1, left, width - right)
    py = lambda y: place(y, y0, y1, height - 50, top)
    body = []
    for power in range(x0, x1 + 1):
        x = px(10**power)
        body.append(f'<line class="axis" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{height - 50}"/>')
        body.append(f'<text class="dim" x="{x:.1f}" y="{height - 32}" text-anchor="middle">{10**power:,}</text>')
    for power in range(y0, y1 + 1):
        y = py(10**power)
        body.append(f'<line class="axis" x1="{left}" y1="{y:.1f}" x2="{width - right}" y2="{y:.1f}"/>')
        body.append(f'<text class="dim" x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{10**power:g} {up}</text>')
    body.append(f'<text class="dim" x="{(left + width - right) / 2:.0f}" y="{height - 10}" text-anchor="middle">{escape(across)}</text>')
    ends = []
    for i, (name, points) in enumerate(series):
        shade = SHADES[i % len(SHADES)]
        way = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in points)
        body.append(f'<polyline class="line {shade}" points="{way}"/>')
        body.extend(f'<circle class="{shade}" cx="{px(x):.1f}" cy="{py(y):.1f}" r="3"/>' for x, y in points)
        ends.append((py(points[-1][1]), px(points[-1][0]), shade, name))
    # Names of lines that end close together make room for each other.
    below = -math.inf
    for y, x, shade, name in sorted(ends):
        below = max(y + 4, below + 16)
        body.append(f'<text class="{shade}" x="{x + 8:.1f}" y="{below:.1f}">{escape(name)}</text>')
    return frame(width, height, title, body)


def capture():
    rows = tables("capture.md")[0]
    values = [(row[0].replace("`", ""), [number(row[3]), number(row[2])]) for row in rows[1:]]
    return bars("Processor time of captured programs, against the plain program", ["foresee, recording", "ThreadSanitizer"], values, "×")


def speed():
    wanted = [
        ("traces.md", "native reading, warm", "read a native trace"),
        ("traces.md", "validation", "and validate it"),
        ("traces.md", "clocks", "and stamp each event with a clock"),
        ("traces.md", "std parsing", "read a text trace"),
        ("patterns.md", "pattern prediction, 3 events", "predict a pattern of 3 events"),
        ("patterns.md", "pattern prediction, 1,000 patterns", "predict 1,000 patterns"),
        ("lattice.md", "windowed lattice, 128 cuts", "predict a property, window of 128 cuts"),
    ]
    values = []
    for page, case, label in wanted:
        rows = [row for table in tables(page) for row in table if row[:3] == [case, "4", "10 M"]]
        values.append((label, [number(rows[0][3])]))
    return bars("Millions of events a second: one core, 4 threads, 10 million events", ["foresee"], values, " M/s")


def lattice():
    rows = tables("lattice.md")[0]
    values = [(f"{row[0]} threads, {int(row[2]):,} cuts", [number(row[3]), number(row[4])]) for row in rows[1:]]
    return bars("Cuts of the lattice, in millions a second on one core", ["foresee", "port of the papers' code"], values, " M/s")


def growth():
    points = {}
    for rows in tables("growth.md"):
        sizes = [number(cell) for cell in rows[0][1:]]
        for row in rows[1:]:
            timed = [(n, number(cell)) for n, cell in zip(sizes, row[1:]) if n and re.match(r"[\d.]+ s", cell)]
            # The last table that has a case is the newest.
            if len(timed) > 1:
                points[row[0]] = [(n, max(time, 0.005)) for n, time in timed]
    names = {
        "locks-up": "nested locks: deadlocks",
        "threads-causality": "threads: causality",
        "chain-index": "chain of threads: index",
        "writer-correct": "readers of a writer: correct",
        "pool-spec": "pool: property",
    }
    return lines("Time of a check as the number of threads or locks grows", [(names[k], points[k]) for k in names], "threads or locks", "s")


PICTURES = {"capture": capture, "speed": speed, "lattice": lattice, "growth": growth}


def main():
    folder = ROOT / "docs/plots"
    stale = []
    for name, draw in PICTURES.items():
        file, picture = folder / f"{name}.svg", draw()
        if sys.argv[1:] == ["--check"]:
            if not file.exists() or file.read_text(encoding="utf-8") != picture:
                stale.append(name)
        else:
            folder.mkdir(exist_ok=True)
            file.write_text(picture, encoding="utf-8")
    if stale:
        sys.exit(f"docs/plots: {', '.join(stale)} not up to date: run benches/plots.py")


if __name__ == "__main__":
    main()
