"""Draws a board of Connect Four as SVG: a blue board with holes, stones in two colours."""

SEATS = {1: "#f2c14e", 2: "#d1495b"}
EMPTY = "#e8eef7"


def board(stacks, columns, rows, marked):
    """The picture. Each square is 10 wide, and row 0 is at the bottom."""
    width, height = 10 * columns, 10 * rows
    labels = [
        f'<text x="{10 * column + 5}" y="{height + 3.4}">{column}</text>' for column in range(columns)
    ]
    holes = [
        hole(stacks[column], column, row, rows, (column, row) in marked)
        for column in range(columns)
        for row in range(rows)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-2 -2 {width + 4} {height + 8}">'
        f'<rect x="-2" y="-2" width="{width + 4}" height="{height + 8}" rx="4" fill="#23508e"/>'
        + "".join(holes)
        + f'<g font-family="sans-serif" font-size="4" text-anchor="middle" fill="{EMPTY}">'
        + "".join(labels)
        + "</g></svg>"
    )


def hole(stack, column, row, rows, is_marked):
    """One hole, empty or with its stone. A marked stone has a white ring."""
    x, y = 10 * column + 5, 10 * (rows - row) - 5
    if row >= len(stack):
        return f'<circle cx="{x}" cy="{y}" r="4" fill="{EMPTY}"/>'
    ring = ' stroke="#fff" stroke-width="1"' if is_marked else ""
    return f'<circle cx="{x}" cy="{y}" r="4" fill="{SEATS[stack[row]]}"{ring}/>'
