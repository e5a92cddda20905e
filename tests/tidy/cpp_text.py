"""A small reader of C++ text: blanks comments and literals, and finds function bodies.

It is a heuristic, not a parser. It has to be right on code that clang-format has laid out, and it
errs on the side of not seeing a function.
"""

import re

LEXEME = re.compile(
    r"""//[^\n]*(?:\\\n[^\n]*)*       # line comment
      | /\*.*?\*/                     # block comment
      | R"(?P<tag>[^()\\\s]*)\(.*?\)(?P=tag)"   # raw string
      | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'     # character, not a digit separator
      | "(?:\\.|[^"\\\n])*"           # string
    """,
    re.X | re.S,
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
TEMPLATE_HEAD = re.compile(r"\btemplate\s*<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>")
ATTRIBUTE = re.compile(r"\[\[.*?\]\]|\balignas\s*\([^()]*\)", re.S)


def keep_lines(text):
    return re.sub(r"[^\n]", " ", text)


def blank(text):
    """Returns text with comments, literals and directives replaced by spaces, same line breaks."""

    def replace(match):
        lexeme = match.group(0)
        if lexeme.startswith(("//", "/*")):
            return keep_lines(lexeme)
        return '"' + keep_lines(lexeme[1:-1]) + '"'

    return DIRECTIVE.sub(lambda match: keep_lines(match.group(0)), LEXEME.sub(replace, text))


def scope_kind(head):
    """Classifies the text in front of a brace at namespace or class scope."""
    head = ATTRIBUTE.sub(" ", TEMPLATE_HEAD.sub(" ", head)).strip()
    if re.search(r"\bnamespace\b", head) or re.search(r'\bextern\s*"\s*"\s*$', head):
        return "scope"
    if re.search(r"\bconcept\b", head) or re.search(r"\benum\b", head):
        return "other"
    if "(" not in head:
        return "scope" if re.search(r"\b(class|struct|union)\b", head) else "other"
    if head.endswith(("=", "return", ",")):
        return "other"
    return "function"


def functions(text):
    """Yields (first line, last line, head) of each function at namespace or class scope."""
    text = blank(text)
    stack = []  # kinds of the open braces
    head_start = 0
    parens = 0
    for match in re.finditer(r"[{}();]", text):
        token, at = match.group(0), match.start()
        inside_body = any(kind != "scope" for kind, _ in stack)
        if token in "()":
            parens += 1 if token == "(" else -1
        elif token == "{":
            kind = "other"
            if not inside_body and parens == 0:
                kind = scope_kind(text[head_start:at])
            stack.append((kind, head_start))
            if not inside_body and parens == 0:
                head_start = at + 1
        elif token == "}":
            kind, start = stack.pop() if stack else ("other", at)
            if kind == "function" and not any(k != "scope" for k, _ in stack):
                head = text[start:at]
                start += len(head) - len(head.lstrip())
                first = text.count("\n", 0, start) + 1
                last = text.count("\n", 0, at) + 1
                yield first, last, " ".join(text[start:at].split("{")[0].split())
            if parens == 0 and not any(k != "scope" for k, _ in stack):
                head_start = at + 1
        elif not inside_body and parens == 0:
            head_start = at + 1
