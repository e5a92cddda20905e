"""Files that the documents name exist, and every source of a module stands in its file map. What
the way of a packet says of a file stands in it.

A file map is a section whose heading says so, "## File map of `src/core`": tables whose first
column names files, relative to the module or to src/. `foo.*` stands for all files of that name,
`folder/` for all that is in it.

The way of a packet is a table below the heading "The same in words": a step, a file below src/, and
what happens there with names of functions; and a picture that pairs texts of the class "file" with
names.
"""

import fnmatch
import re

HEADING = re.compile(r"^#+ .*\bFile map of\b")
ANY_HEADING = re.compile(r"^#+ ")
MODULE = re.compile(r"`src/(\w+)`")
QUOTED = re.compile(r"`([^`]+)`")
# Placeholders such as src/<module>/ are no paths.
PATH = re.compile(
    r"(bench|cmake|docs|examples|fuzz|plugins|scenarios|scripts|src|tests|tools)/[\w./*-]+"
)
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")
WAY = re.compile(r"^#+ The same in words$")
FUNCTION = re.compile(r"(?:\w+(?:::|\.))?(\w+)")
SVG_TEXT = re.compile(r'<text x="\d+" y="\d+"(?: class="([^"]*)")?>([^<]*)</text>')
SOURCES = (".h", ".cc", ".c")


def lines_of(text):
    """Yields (line number, line) for lines outside of blocks of code."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            code = not code
        elif not code:
            yield number, line


def quoted_words(text):
    for quoted in QUOTED.findall(text):
        yield from quoted.split()


def exists(name, files):
    """Whether a file, a folder or, with a star, any file of that name is among `files`."""
    if "*" in name:
        return any(fnmatch.fnmatchcase(file, name) for file in files)
    name = name.rstrip("/")
    return name in files or any(file.startswith(name + "/") for file in files)


def normal(folder, link):
    parts = list(folder)
    for part in link.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def check_names(path, text, files):
    """Yields (line number, message) for each path or link in a document that leads nowhere."""
    for number, line in lines_of(text):
        for word in quoted_words(line):
            word = word.rstrip(".,;:")
            if PATH.fullmatch(word) and not exists(word, files):
                yield number, f"there is no {word}"
    yield from check_links(path, text, files)


def check_links(path, text, files):
    """Yields (line number, message) for each link to a file that is not there."""
    for number, line in lines_of(text):
        for link, _ in LINK.findall(line):
            if link and not exists(normal(path.parts[:-1], link), files):
                yield number, f"the link {link} leads nowhere"


def anchor(heading):
    """What a heading is called behind the # of a link."""
    words = re.sub(r"[^\w\- ]", "", heading.lstrip("#").strip().lower())
    return words.replace(" ", "-")


def check_anchors(documents):
    """Yields (path, line number, message) for links to headings that are not there."""
    headings = {path.as_posix(): {anchor(line) for _, line in lines_of(text)
                                  if ANY_HEADING.match(line)} for path, text in documents}
    for path, text in documents:
        for number, line in lines_of(text):
            for link, heading in LINK.findall(line):
                target = normal(path.parts[:-1], link) if link else path.as_posix()
                if heading and heading not in headings.get(target, {heading}):
                    yield path, number, f"{target} has no heading {heading}"


def names_in(words):
    return [match[1] for match in map(FUNCTION.fullmatch, words) if match]


def way_in_words(text):
    """Yields (line number, file, names) of the table below the heading."""
    inside = False
    for number, line in lines_of(text):
        if ANY_HEADING.match(line):
            inside = bool(WAY.match(line))
        elif inside and line.startswith("| "):
            cells = line.split("|")
            files = QUOTED.findall(cells[2])
            if files:
                yield number, files[0], names_in(QUOTED.findall(cells[3]))


def way_in_picture(svg):
    """Yields (line number, file, names) of a picture: what stands behind a colon is prose."""
    file = None
    for number, line in enumerate(svg.splitlines(), 1):
        match = SVG_TEXT.match(line)
        kind, words = match.groups() if match else ("other", "")
        if kind == "file":
            file = words
        elif kind is None and file:
            said = re.sub(r"[:(].*", "", words.replace("::", "."))
            yield number, file, names_in(word.strip(",") for word in said.split())
        else:
            file = None


def check_way(path, way, read):
    """Yields (path, line number, message); `read` gives the text of a file below src/, or None."""
    for number, file, names in way:
        text = read(file)
        if text is None:
            yield path, number, f"there is no src/{file}"
            continue
        for name in names:
            if not re.search(rf"\b{name}\b", text):
                yield path, number, f"src/{file} has no {name}"


def map_rows(text):
    """Yields (line number, modules, row) for the rows of all file maps."""
    modules = []
    for number, line in lines_of(text):
        if ANY_HEADING.match(line):
            modules = MODULE.findall(line) if HEADING.match(line) else []
        elif modules and line.startswith("|"):
            yield number, modules, line


def stem(file):
    return file.rsplit(".", 1)[0]


def meant(name, modules, files):
    """The files that a name in a file map of these modules stands for."""
    if name.endswith("/"):
        name += "*"
    if name.split("/")[0] in modules:
        return fnmatch.filter(files, f"src/{name}")
    patterns = [f"src/{module}/{below}{name}" for module in modules for below in ("", "*/")]
    return [file for pattern in patterns for file in fnmatch.filter(files, pattern)]


def check_maps(documents, files, modules):
    """Yields (path, line number, message); `documents` are (path, text), `files` posix paths."""
    sources = [file for file in files if file.startswith("src/") and file.endswith(SOURCES)]
    mapped = set()  # modules, and files without their suffixes
    for path, text in documents:
        for number, row_modules, row in map_rows(text):
            mapped.update(row_modules)
            for column, cell in enumerate(row.split("|")[1:]):
                for word in quoted_words(cell):
                    hits = meant(word, row_modules, files)
                    mapped.update(map(stem, hits))
                    # Behind the first column stand other things as well.
                    if column == 0 and not hits:
                        yield path, number, f"there is no {word} in {' or '.join(row_modules)}"
    for module in sorted(modules):
        if module not in mapped:
            yield f"src/{module}", 1, "no document has a file map of it"
            continue
        for file in sources:
            if file.split("/")[1] == module and stem(file) not in mapped:
                yield file, 1, "stands in no file map"
