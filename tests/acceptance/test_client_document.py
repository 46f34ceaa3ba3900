"""The examples of docs/client.md, as they stand there, against a really running node."""

from __future__ import annotations

import re

import pytest

from tests.support.service import REPOSITORY, Service

TEXT = (REPOSITORY / "docs" / "client.md").read_text("utf-8")
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXAMPLES = {
    title: "\n".join(blocks)
    for title, blocks in ((section.partition("\n")[0], _BLOCK.findall(section)) for section in TEXT.split("\n## ")[1:])
    if blocks
}


@pytest.mark.parametrize("title", EXAMPLES)
def test_the_example_works(service: Service, title: str) -> None:
    code = EXAMPLES[title].replace("localhost:61613", f"127.0.0.1:{service.stomp_port}")
    assert code != EXAMPLES[title], "it is not for this service"
    exec(compile(code, f"docs/client.md, {title}", "exec"), {"__name__": "example"})


def test_every_section_that_shows_something_is_found() -> None:
    assert len(EXAMPLES) == TEXT.count("```python") == 15
