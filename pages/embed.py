#!/usr/bin/env python3
"""Writes files into a C++ source: embed.py OUT FILE..., each found by its name at run time."""

import pathlib
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8"}

HEAD = '''// Made by pages/embed.py.
#include "commands/view/assets.h"

#include <array>

namespace mrc::tool::view_tool {
namespace {

'''
TAIL = '''
}  // namespace

const Asset* find_asset(std::string_view name) {
  for (const Asset& asset : kAssets)
    if (asset.name == name) return &asset;
  return nullptr;
}

bool has_page() { return find_asset("page.js") != nullptr; }

}  // namespace mrc::tool::view_tool
'''


def main():
    out, *names = sys.argv[1:]
    text = HEAD
    entries = ""
    for number, name in enumerate(names):
        path = pathlib.Path(name)
        data = path.read_bytes()
        text += f"constexpr char kFile{number}[] = {{"
        text += ",".join(str(byte if byte < 128 else byte - 256) for byte in data) + "};\n"
        entries += (f'    Asset{{"{path.name}", "{TYPES[path.suffix]}", '
                    f"std::string_view(kFile{number}, sizeof(kFile{number}))}},\n")
    text += f"\nconstexpr std::array<Asset, {len(names)}> kAssets{{{{\n{entries}}}}};\n"
    pathlib.Path(out).write_text(text + TAIL, encoding="utf-8")


if __name__ == "__main__":
    main()
