"""A screen of a terminal (`tmux capture-pane -e -p` on stdin) as an SVG picture on stdout.

usage: ansi_svg.py COLUMNS TITLE

Block characters are drawn as rectangles, so that no font leaves gaps between them.
"""
import html
import re
import sys

WIDTH, HEIGHT, MARGIN, BAR = 8.4, 18, 14, 28  # of a character in pixels; around the screen; the window's title
BACKGROUND, PLAIN = "#16181d", "#d5d8de"
COLOURS = ["#3b4048", "#ff6b68", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", PLAIN]
SGR = re.compile(r"\x1b\[([0-9;]*)m|\x1b\([AB0]|[\x0e\x0f]")


class Style:
    def __init__(self):
        self.reset()

    def reset(self):
        self.colour, self.bold, self.dim, self.line, self.reverse = PLAIN, False, False, False, False

    def obey(self, codes):
        for code in [int(word or 0) for word in codes.split(";")]:
            if code == 0:
                self.reset()
            elif code in (1, 2, 4, 7):
                setattr(self, {1: "bold", 2: "dim", 4: "line", 7: "reverse"}[code], True)
            elif code == 22:
                self.bold = self.dim = False
            elif code in (24, 27):
                setattr(self, {24: "line", 27: "reverse"}[code], False)
            elif 30 <= code <= 37:
                self.colour = COLOURS[code - 30]
            elif code == 39:
                self.colour = PLAIN


def rectangle(x, y, width, height, colour, opacity=1.0):
    return (f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" fill="{colour}"'
            + (f' opacity="{opacity}"' if opacity < 1 else "") + "/>")


def run(text, x, y, style):
    """Characters of one style, from x on."""
    colour = BACKGROUND if style.reverse else style.colour
    opacity = 0.55 if style.dim else 1.0
    shapes = []
    if style.reverse:
        shapes.append(rectangle(x, y, WIDTH * len(text), HEIGHT, style.colour))
    words = ""
    for place, character in enumerate(text):
        left = x + place * WIDTH
        if "▁" <= character <= "█":
            height = HEIGHT * (ord(character) - ord("▁") + 1) / 8
            shapes.append(rectangle(left, y + HEIGHT - height, WIDTH, height, colour, opacity))
        elif "▉" <= character <= "▏":
            shapes.append(rectangle(left, y, WIDTH * (ord("▏") - ord(character) + 1) / 8, HEIGHT, colour, opacity))
        words += " " if "▁" <= character <= "▏" else character
    for word in re.finditer(r"\S+", words):  # one by one: spaces would be taken together
        left, length = x + word.start() * WIDTH, len(word.group()) * WIDTH
        attributes = ' font-weight="bold"' if style.bold else ""
        attributes += ' text-decoration="underline"' if style.line else ""
        attributes += f' opacity="{opacity}"' if style.dim else ""
        shapes.append(f'<text x="{left:.2f}" y="{y + HEIGHT * 0.74:.2f}" textLength="{length:.2f}" '
                      f'fill="{colour}"{attributes}>{html.escape(word.group())}</text>')
    return shapes


def main():
    columns, title = int(sys.argv[1]), sys.argv[2]
    lines = sys.stdin.read().rstrip("\n").split("\n")
    shapes = []
    style = Style()
    for row, line in enumerate(lines):
        y, column, position = BAR + MARGIN / 2 + row * HEIGHT, 0, 0
        for match in [*SGR.finditer(line), None]:
            text = line[position:match.start() if match else len(line)]
            shapes += run(text, MARGIN + column * WIDTH, y, style) if text else []
            column += len(text)
            if match:
                position = match.end()
                style.obey(match.group(1)) if match.group(1) is not None else None
    width, height = 2 * MARGIN + columns * WIDTH, BAR + 1.5 * MARGIN + len(lines) * HEIGHT
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
          f'height="{height:.0f}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13.5">'
          f'<title>{html.escape(title)}</title>')
    print(f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>')
    print(f'<text x="{width / 2:.0f}" y="{BAR * 0.68:.0f}" text-anchor="middle" fill="#8a909a">{html.escape(title)}</text>')
    print("\n".join(shapes) + "\n</svg>")


main()
