#!/usr/bin/env python3
"""Looks at a report as a browser shows it: screenshot.py REPORT.html [FOLDER], on a screen of 1280 pixels and on a telephone's 390.

Needs chromium (apt-get install chromium). The page must draw itself without a network and without scripts, in many colors, and leave its
margins free: nothing may stick out to the right. FOLDER keeps the pictures.
"""
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

HEIGHT, MARGIN = 2400, 6


def pixels(path):
    """Rows of (r, g, b) of an 8-bit PNG with 3 or 4 channels."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", f"{path} is no PNG"
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", data[at + 8:at + 18])
            assert depth == 8 and color in (2, 6), (depth, color)
        elif kind == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    channels = 3 if color == 2 else 4
    raw, stride, rows, before = zlib.decompress(packed), width * channels, [], bytearray(width * channels)
    for y in range(height):
        kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride):
            left = line[i - channels] if i >= channels else 0
            corner = before[i - channels] if i >= channels else 0
            if kind == 1:
                line[i] = (line[i] + left) & 255
            elif kind == 2:
                line[i] = (line[i] + before[i]) & 255
            elif kind == 3:
                line[i] = (line[i] + (left + before[i]) // 2) & 255
            elif kind == 4:
                p = left + before[i] - corner
                best = min((abs(p - left), 0, left), (abs(p - before[i]), 1, before[i]), (abs(p - corner), 2, corner))
                line[i] = (line[i] + best[2]) & 255
        rows.append([tuple(line[x:x + 3]) for x in range(0, stride, channels)])
        before = line
    return rows


def main():
    report = pathlib.Path(sys.argv[1]).resolve()
    browser = shutil.which("chromium")
    if not browser:
        print("chromium is not installed: no screenshot", file=sys.stderr)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for width in (1280, 390):
            picture = folder / f"report-{width}.png"
            # A window of a browser is at least 500 pixels wide, so the telephone is a frame in it.
            page = pathlib.Path(temporary) / "frame.html"
            # Its sandbox lets no script run. A browser that is told so itself draws nothing.
            page.write_text(f'<body style="margin:0"><iframe sandbox="allow-same-origin" src="{report.as_uri()}" '
                            f'style="border:0;width:{width}px;height:{HEIGHT}px"></iframe></body>')
            done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
                                   "--allow-file-access-from-files", f"--user-data-dir={temporary}/profile", "--virtual-time-budget=2000",
                                   "--host-resolver-rules=MAP * ~NOTFOUND",
                                   f"--window-size={max(width, 600)},{HEIGHT}", f"--screenshot={picture}", page.as_uri()],
                                  capture_output=True, text=True, timeout=120, env={**os.environ, "HOME": temporary})
            assert picture.exists(), done.stderr[-2000:]
            rows = [row[:width] for row in pixels(picture)]
            colors = {color for row in rows for color in row}
            assert len(colors) > 40, f"{width}: the page is nearly blank, {len(colors)} colors"
            background = rows[0][0]
            out = sum(color != background for row in rows for color in row[-MARGIN:])
            assert out == 0, f"{width}: {out} pixels stick out to the right"
            print(f"ok: {width} pixels wide, {len(colors)} colors, nothing sticks out")


if __name__ == "__main__":
    main()
