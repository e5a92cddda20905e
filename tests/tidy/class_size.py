"""Counts fields and methods of C++ classes, with the reader of cpp_text: a heuristic for code that
clang-format has laid out."""

import re

import cpp_text

HEAD = re.compile(
    r"(?<!enum )\b(?:class|struct)\s+(?:\[\[[^\]]*\]\]\s*)?([A-Za-z_][\w:]*)"
    r"(?:\s+final)?\s*(?::[^;{()]*)?\{"
)
NOT_MEMBERS = {"using", "friend", "static_assert", "enum", "class", "struct", "union", "typedef"}


def statements(body):
    """Yields the members of a class body; of those with a block only what stands before it."""
    depth = parens = start = 0
    head_end = None
    at = 0
    while at < len(body):
        token = body[at]
        if token in "([":
            parens += 1
        elif token in ")]":
            parens -= 1
        elif parens and token in "{}":
            pass  # a default argument
        elif token == "{":
            if depth == 0:
                head_end = at
            depth += 1
        elif token == "}":
            depth -= 1
            if depth == 0:
                rest = re.match(r"\s*[;,]", body[at + 1 :])
                yield body[start:head_end]
                at += rest.end() if rest else 0
                start = at + 1
        elif token == ";" and depth == 0 and parens == 0:
            yield body[start:at]
            start = at + 1
        at += 1


def without_template_arguments(text):
    while True:
        shorter = re.sub(r"<[^<>()]*(\([^()]*\))?[^<>()]*>", "", text)
        if shorter == text:
            return text
        text = shorter


def count(body):
    """(fields, methods) of a class body."""
    fields = methods = 0
    for text in statements(body):
        text = re.sub(r"\b(public|private|protected)\s*:(?!:)", "", text)
        text = re.sub(r"\[\[[^\]]*\]\]", "", text)
        text = cpp_text.TEMPLATE_HEAD.sub(" ", text).strip()
        if not text or text.split()[0] in NOT_MEMBERS:
            continue
        text = without_template_arguments(text)
        declared = text if "operator" in text else text.split("=")[0]
        if "(" in declared:
            # What the compiler writes is nobody's burden.
            methods += 0 if re.search(r"=\s*(default|delete)\s*$", text) else 1
        elif "static constexpr" not in declared:
            fields += 1 + declared.count(",")
    return fields, methods


def classes(text):
    """Yields (line, name, fields, methods) of each class and struct."""
    text = cpp_text.blank(text)
    for match in HEAD.finditer(text):
        depth, at = 1, match.end()
        while at < len(text) and depth:
            depth += (text[at] == "{") - (text[at] == "}")
            at += 1
        yield (text.count("\n", 0, match.start()) + 1, match.group(1),
               *count(text[match.end() : at - 1]))
