"""The command line is complete: each call of the API has its command, docs/operations.md names it, and shells complete it."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from django.urls import Resolver404, resolve

from console.cli import commands, described, exits
from console.cli.completion import script
from console.cli.described import form
from console.cli.options import parser_of, split
from tests.console.terminal import mq

OPERATIONS = Path(__file__).resolve().parents[2] / "docs" / "operations.md"


def test_every_call_of_the_api_has_a_command_or_a_reason_for_none():
    calls = set(described.operations())
    told = {(each.method, described.form(each.path)) for each in commands.COMMANDS}
    assert told <= calls
    assert calls - told == set(commands.WITHOUT)
    assert len(commands.BY_NAME) == len(commands.COMMANDS)


@pytest.mark.parametrize("command", commands.COMMANDS, ids=lambda each: each.name)
def test_every_command_tells_what_it_takes(command):
    ran = mq(command.verb, command.object, "--help")
    assert ran.code == exits.DONE
    assert described.describe(command).summary in ran.told
    options = [option for each in described.describe(command).arguments if (option := each.option)]
    assert len(options) == len(set(options))
    assert parser_of(command, described.describe(command)).prog.endswith(command.name)


def _rows() -> list[list[str]]:
    table = OPERATIONS.read_text().partition("## Command line")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ") and "| what |" not in line]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_the_table_of_operations_names_the_command_that_does_each_of_them():
    named = set()
    for row in _rows():
        assert len(row) == 3, row
        found = re.findall(r"`mq ([a-z]+ [a-z]+)", row[2])
        assert found or re.match(r"not yet|none: |`manage.py ", row[2]), row
        assert found or not re.search("(GET|POST|PUT|PATCH|DELETE) ", row[1]), row
        named |= set(found)
    assert named == {command.name for command in commands.COMMANDS} - EXPLAINED


def test_the_table_of_operations_says_no_command_call_or_page_that_is_not_there():
    called, wrong = {(method, form(path)) for method, path in described.operations()}, []
    for _, here, commanded in _rows():
        for words in re.findall(r"`mq ([^`]*)`", commanded):
            _, (verb, thing, *rest) = split(shlex.split(words))
            command = commands.find(verb, thing)
            try:
                parser_of(command, described.describe(command)).parse_args(["x" if word == "..." else word for word in rest])
            except exits.Ended as ended:
                wrong += [words] * ("are required" not in ended.sentence)  # some are cut short
        for method, path in re.findall(r"`(GET|POST|PUT|PATCH|DELETE) ([a-z][^ ?`]*)", here):
            found = form(re.sub(r"/(commit|pause)$", "/{verb}", path) if path.startswith("branches") else path)
            wrong += [(method, path)] * ((method, found) not in called)
        for page in re.findall(r"`/([a-z]+)(?:/<n>)?(?:/(?:[a-z]+|<key>))*`", here):
            wrong += [page] * (not resolves(f"/{page}") and not resolves(f"/{page}/ready"))
    assert wrong == []


def resolves(path: str) -> bool:
    try:
        return bool(resolve(path))
    except Resolver404:
        return False


EXPLAINED = {"list problem", "query me", "query request"}
"""What no operator of another broker asks for."""


# -- completion ------------------------------------------------------------------------------------------------------------------------------------
def _completed(line: str) -> list[str]:
    words = line.split(" ")
    typed = f"COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}"
    asked = f"{script('bash')}\n{typed}; _surety_mq; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-uc", asked], capture_output=True, text=True, timeout=20)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_verbs_objects_and_options():
    assert subprocess.run(["bash", "-n"], input=script("bash"), capture_output=True, text=True, timeout=20).stderr == ""
    assert _completed("mq pu") == ["purge"]
    assert _completed("mq purge ") == ["dst", "msg", "dur"]
    assert _completed("mq purge dst queue/a --dry") == ["--dry-run"]
    assert _completed("mq completion z") == ["zsh"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_are_told_of_every_command(shell):
    text = mq("completion", shell).told
    for command in commands.COMMANDS:
        assert command.verb in text
        assert command.object in text
