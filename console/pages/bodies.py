"""Bodies of messages in a form that people read."""

import re

XML_CHARACTERS_MAX = 65_536
_TAG = re.compile(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<[^>]*>", re.DOTALL)
_PAIRS = (("<!--", "-->"), ("<![CDATA[", "]]>"))
_SUBSET = re.compile(r"<!DOCTYPE[^<>\[]*\[")
"""Declarations within: such a text stays as it is. Looked for as far as the next tag, or a text of many beginnings would be read over and over."""
DEEPEST = 40
"""Levels that are indented; what is deeper stays at that."""


def pretty_xml(text: str) -> str:
    """Indented by its tags, which are read as text and nothing else: no entity is expanded, nothing is fetched. Empty: it is no XML, or stays as it is."""
    text = text.strip()
    if not text.startswith("<") or not text.endswith(">") or len(text) > XML_CHARACTERS_MAX or _SUBSET.search(text):
        return ""
    if any(text.rfind(begin) > text.rfind(end) for begin, end in _PAIRS):
        return ""  # one that never ends: each that begins would be looked for an end to the end
    lines: list[str] = []
    depth = at = 0
    opened = False
    """The last line is an opening tag, so that text and its end stay on it."""
    for found in _TAG.finditer(text):
        between, tag = text[at : found.start()].strip(), found[0]
        at = found.end()
        if tag.startswith("</"):
            depth -= 1
            if depth < 0:
                return ""
            if opened:
                lines[-1] += between + tag
            else:
                lines += [_indented(each, depth + 1) for each in [between] if each]
                lines.append(_indented(tag, depth))
            opened = False
            continue
        if between:
            lines.append(_indented(between, depth))
        lines.append(_indented(tag, depth))
        opened = not tag.endswith("/>") and not tag.startswith(("<?", "<!"))
        depth += opened
    return "\n".join(lines) if depth == 0 and at == len(text) else ""


def _indented(text: str, depth: int) -> str:
    return "  " * min(depth, DEEPEST) + text
