"""The page of a comparison: one HTML file that needs nothing else, its plots drawn as SVG in the text.

For each model the plot of tokens/s against sessions (one line a program, bars from the lowest to the highest round),
the roofline of one session, and the table. Sessions are on a logarithmic axis, since they double.
"""
import math
from html import escape

import report

COLOURS = ("#b3261e", "#1f5fa8", "#2e7d32", "#8a5a00", "#6a3d9a", "#00796b", "#555555")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 380, 70, 200, 20, 50

STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}
pre{overflow-x:auto;font-size:12px;background:#f5f5f5;padding:1em}svg{max-width:100%;height:auto}
svg text{font:12px system-ui,sans-serif;fill:#222}"""


def page_of(whole):
    body = "".join(section_of(model, whole) for model in whole["models"])
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>troupe and its peers</title>'
            f"<style>{STYLE}</style></head><body><h1>troupe and its peers</h1>\n{body}"
            f"<h2>What was compared</h2><pre>{escape(report.notes_of(whole))}</pre></body></html>\n")


def section_of(model, whole):
    names = [program["name"] for program in whole["programs"]]
    return (f"<h2>{escape(model['file'])}</h2>\n{throughput_plot(model, names)}\n{roofline_plot(model, names)}\n"
            f"<pre>{escape(report.model_table(model, whole['settings']))}</pre>\n")


def colour_of(names, name):
    return COLOURS[names.index(name) % len(COLOURS)]


def throughput_plot(model, names):
    cells = [cell for cell in model["ratios"] if cell != "prefill"]
    lines = {name: [(int(cell), each["rates"][cell]) for cell in cells if cell in each["rates"]]
             for name, each in model["programs"].items()}
    lines = {name: points for name, points in lines.items() if points}
    if not lines:
        return "<p>Nothing was measured.</p>"
    sessions = [int(cell) for cell in cells]
    top = nice_ceiling(max(figures["high"] for points in lines.values() for _, figures in points))
    place = placing(min(sessions), max(sessions), top)
    parts = axes(sessions, top, place)
    for i, (name, points) in enumerate(sorted(lines.items(), key=lambda item: -item[1][-1][1]["median"])):
        parts += line_of(points, colour_of(names, name), place) + legend_of(name, colour_of(names, name), i)
    return svg(HEIGHT, "Throughput against sessions", parts)


def placing(least, most, top):
    """A function from (sessions, tokens/s) to the picture's coordinates."""
    span = math.log2(most / least) or 1.0
    return lambda n, rate: (LEFT + (WIDTH - LEFT - RIGHT) * math.log2(n / least) / span,
                            HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * rate / top)


def nice_ceiling(value):
    """The next round number, such that five steps up to it are round too."""
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if value <= step * power)


def axes(sessions, top, place):
    left, right, bottom = LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [f'<path d="M{left} {TOP}V{bottom}H{right}" fill="none" stroke="#222"/>']
    for i in range(6):
        y = place(sessions[0], top * i / 5)[1]
        parts.append(f'<path d="M{left} {y:.1f}H{right}" stroke="#ddd"/>' if i else "")
        parts.append(words(left - 8, y + 4, f"{top * i / 5:g}", "end"))
    for n in sessions:
        x = place(n, 0)[0]
        parts.append(f'<path d="M{x:.1f} {bottom}v5" stroke="#222"/>' + words(x, bottom + 19, n, "middle"))
    parts.append(words((left + right) / 2, HEIGHT - 10, "sessions at once (number, logarithmic)", "middle"))
    middle = (TOP + bottom) / 2
    label = words(16, middle, "throughput, all sessions (decode tokens/s)", "middle")
    parts.append(f'<g transform="rotate(-90 16 {middle})">{label}</g>')
    return parts


def line_of(points, colour, place):
    corners = [place(n, figures["median"]) for n, figures in points]
    parts = ['<polyline fill="none" stroke-width="2" stroke="%s" points="%s"/>'
             % (colour, " ".join(f"{x:.1f},{y:.1f}" for x, y in corners))]
    for (x, y), (n, figures) in zip(corners, points):
        low, high = place(n, figures["low"])[1], place(n, figures["high"])[1]
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
                     f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="{colour}" stroke-opacity=".5"/>')
    return parts


def legend_of(name, colour, i):
    x, y = WIDTH - RIGHT + 20, TOP + 14 + 22 * i
    return [f'<path d="M{x} {y - 4}h22" stroke="{colour}" stroke-width="2"/>', words(x + 30, y, name)]


def roofline_plot(model, names):
    """Bars of weight bytes/s of one session, up to the line of what the memory gives."""
    roofline = model["roofline"]
    if not roofline:
        return ""
    used, ceiling = roofline["used_gb_per_second"], roofline["bandwidth_gb_per_second"]
    left, wide = 150, WIDTH - 150 - 130
    top = max(ceiling, *used.values())
    height = 26 * len(used) + 74
    parts = []
    for i, (name, value) in enumerate(sorted(used.items(), key=lambda item: -item[1])):
        y = 30 + 26 * i
        bar = wide * value / top
        parts.append(f'<rect x="{left}" y="{y}" width="{bar:.1f}" height="18" fill="{colour_of(names, name)}"/>'
                     + words(left - 8, y + 13, name, "end")
                     + words(left + bar + 6, y + 13, f"{value:.1f} ({100 * value / ceiling:.0f} %)"))
    x = left + wide * ceiling / top
    parts.append(f'<path d="M{x:.1f} 20V{height - 40}" stroke="#222" stroke-dasharray="4 3"/>'
                 + words(x, 14, f"memory reads {ceiling:.1f} GB/s", "middle"))
    parts.append(words(left + wide / 2, height - 14, "weights read by one session (GB/s)", "middle"))
    return svg(height, "Roofline of one session", parts)


def words(x, y, text, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(str(text))}</text>'


def svg(height, title, parts):
    return (f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" aria-label="{title}">'
            + "".join(parts) + "</svg>")
