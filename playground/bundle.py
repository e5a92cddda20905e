#!/usr/bin/env python3
"""Puts the files of the playground together: bundle.py ROOT WASM SCRIPT OUT.

A page that was opened from a file may neither fetch nor load modules, start no worker from a file
and none beside it. So everything stands in classic scripts: the module as base64, the script of the
worker and the page of a side as texts.
"""

import base64
import json
import pathlib
import re
import shutil
import sys


def frame_html(pages, scripts):
    """The page of `mrc view` in one piece, with our source in the place of its own."""
    html = (pages / "index.html").read_text(encoding="utf-8")
    css = (pages / "page.css").read_text(encoding="utf-8")
    html = html.replace('<link rel="stylesheet" href="page.css">', f"<style>{css}</style>")
    body = re.sub(r"<script src=.*?</script>\n?", "", html)
    code = (scripts + '\nstartPage("playground/web/frame").show();').replace("</", "<\\/")
    if body == html or "page.css" in body:
        raise SystemExit("bundle.py: pages/index.html is not as it was")
    return body.replace("</body>", f"<script>{code}</script></body>")


def main():
    root, wasm, script, out = map(pathlib.Path, sys.argv[1:])
    pages = root / "pages"
    scripts = (pages / "loader.js").read_text(encoding="utf-8") + script.read_text(encoding="utf-8")
    parts = {
        "wasm": base64.b64encode(wasm.read_bytes()).decode(),
        "worker": scripts + '\nstartPage("playground/web/worker").serve();',
        "frame": frame_html(pages, scripts),
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "parts.js").write_text(f"self.mrcParts = {json.dumps(parts)};\n", encoding="utf-8")
    shutil.copy(pages / "loader.js", out / "loader.js")
    shutil.copy(script, out / "playground.js")
    shutil.copy(root / "playground/web/index.html", out / "index.html")


if __name__ == "__main__":
    main()
