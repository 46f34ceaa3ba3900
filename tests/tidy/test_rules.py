"""Each rule finds what it is for, and lets pass what looks like it: else the tree's silence would prove nothing."""

from __future__ import annotations

import ast

import pytest

from tests.tidy import rules

ENGINE, STOMP, STORE, SERVER, WEB = (
    "broker_core/engine/lane.py", "broker_core/stomp/frames.py", "broker_core/store/reads.py", "broker_core/server/host.py",
    "console/pages/overview.py",
)  # fmt: skip
AIO = "broker_core/client/aio/driver.py"

BROKEN = [
    (rules.imports_point_inward, ENGINE, "from broker_core.store import Store"),
    (rules.imports_point_inward, ENGINE, "from ..store import Store"),
    (rules.imports_point_inward, ENGINE, "from broker_core import store"),
    (rules.imports_point_inward, STOMP, "def f():\n    import broker_core.server.host"),
    (rules.imports_point_inward, STORE, "from broker_core.config import BrokerConfig"),
    (rules.imports_point_inward, SERVER, "from console.settings import BROKER"),
    (rules.imports_point_inward, WEB, "from broker_core.engine import Engine"),
    (rules.imports_point_inward, WEB, "from broker_core.store.migrate import migrate"),
    (rules.imports_point_inward, SERVER, "from tests.support import clock"),
    (rules.libraries_stay_in_their_rooms, SERVER, "import django"),
    (rules.libraries_stay_in_their_rooms, SERVER, "import psycopg"),
    (rules.libraries_stay_in_their_rooms, WEB, "from psycopg import sql"),
    (rules.libraries_stay_in_their_rooms, WEB, "import asyncio"),
    (rules.libraries_stay_in_their_rooms, WEB, "import subprocess"),
    (rules.pure_rooms_use_values_only, ENGINE, "import time"),
    (rules.pure_rooms_use_values_only, ENGINE, "from random import choice"),
    (rules.pure_rooms_use_values_only, STOMP, "import logging"),
    (rules.pure_rooms_use_values_only, "broker_core/client/machine/session.py", "import threading"),
    (rules.pure_rooms_use_values_only, "broker_core/client/messages.py", "import pickle"),
    (rules.imports_point_inward, "broker_core/client/driver.py", "from broker_core.server.clock import Clock"),
    (rules.libraries_stay_in_their_rooms, "broker_core/client/driver.py", "import asyncio"),
    (rules.libraries_stay_in_their_rooms, AIO, "import threading"),
    (rules.imports_point_inward, "broker_core/client/driver.py", "from .aio import Connection"),
    (rules.imports_point_inward, AIO, "from broker_core.server.clock import Clock"),
    (rules.each_room_has_one_colour, AIO, "from broker_core.client.channel import Channel"),
    (rules.each_room_has_one_colour, AIO, "from broker_core.client import ConnectionFactory"),
    (rules.each_room_has_one_colour, "broker_core/client/faces/session.py", "from broker_core.client.session import Session"),
    (rules.each_room_has_one_colour, "broker_core/client/factory_settings.py", "from .sockets import Socket"),
    (rules.each_room_has_one_colour, "broker_core/client/session.py", "async def f(): ..."),
    (rules.pure_rooms_use_values_only, STOMP, "print(1)"),
    (rules.pure_rooms_use_values_only, STOMP, "async def f(): ..."),
    (rules.engine_iterates_over_no_set, ENGINE, "for x in {1, 2}: f(x)"),
    (rules.engine_iterates_over_no_set, ENGINE, "dirty: set[int] = set()\nfor x in dirty: f(x)"),
    (rules.engine_iterates_over_no_set, ENGINE, "class A:\n    dirty: set[int]\n    def f(self): return [x for x in self.dirty]"),
    (rules.engine_iterates_over_no_set, ENGINE, "class A:\n    def f(self):\n        self.d = set()\n        return list(self.d)"),
    (rules.engine_iterates_over_no_set, ENGINE, "def f(a: set[int], b): return [*(a - b)]"),
    (rules.environment_is_read_in_one_place, SERVER, "import os\nhome = os.environ['HOME']"),
    (rules.environment_is_read_in_one_place, WEB, "from os import environ"),
    (rules.environment_is_read_in_one_place, WEB, "import os\nos.getenv('HOME')"),
    (rules.nothing_is_swallowed, SERVER, "try: f()\nexcept Exception: log()"),
    (rules.nothing_is_swallowed, SERVER, "try: f()\nexcept: pass"),
    (rules.nothing_is_swallowed, SERVER, "try: f()\nexcept BaseException as e:\n    raise Other() from e"),
    (rules.nothing_is_swallowed, WEB, "def g():\n    try: f()\n    except KeyError: return []"),
    (rules.files_are_named_by_what_they_hold, "broker_core/server/utils.py", ""),
    (rules.files_are_named_by_what_they_hold, "console/common.py", ""),
    (rules.words_are_those_of_the_glossary, SERVER, "queue = 'dead-letter'"),
    (rules.words_are_those_of_the_glossary, SERVER, "def send_to_dlq(): ..."),
    (rules.globals_do_not_change, SERVER, "count = 0\ndef f():\n    global count\n    count += 1"),
    (rules.modules_say_what_they_are, SERVER, "import os"),
]
FINE = [
    (rules.imports_point_inward, AIO, "from broker_core.client.machine import Phase"),
    (rules.each_room_has_one_colour, AIO, "from .link import Link\nfrom broker_core.client.faces.session import SessionFace\nasync def f(): ..."),
    (rules.each_room_has_one_colour, "broker_core/client/driver.py", "from .channel import Channel\nimport threading"),
    (rules.imports_point_inward, STOMP, "from broker_core.engine.commands import Send"),
    (rules.imports_point_inward, ENGINE, "from .message import Message"),
    (rules.imports_point_inward, "console/management/commands/migrate.py", "from broker_core.store.migrate import migrate"),
    (rules.libraries_stay_in_their_rooms, STORE, "import psycopg"),
    (rules.libraries_stay_in_their_rooms, "console/launch/child.py", "import asyncio"),
    (rules.pure_rooms_use_values_only, ENGINE, "from collections.abc import Sequence\nimport heapq"),
    (rules.pure_rooms_use_values_only, SERVER, "import time"),
    (rules.engine_iterates_over_no_set, ENGINE, "dirty: set[int] = set()\nfor x in sorted(dirty): f(x)"),
    (rules.engine_iterates_over_no_set, ENGINE, "dirty: dict[int, None] = {}\nfor x in dirty: f(x)"),
    (rules.engine_iterates_over_no_set, ENGINE, "dirty = {1}\nf(3 in dirty)"),
    (rules.engine_iterates_over_no_set, ENGINE, "def f():\n    held = {1}\ndef g(held: list[int]):\n    return [x for x in held]"),
    (rules.environment_is_read_in_one_place, "console/settings.py", "import os\nos.environ.get('HOME')"),
    (rules.nothing_is_swallowed, SERVER, "try: f()\nexcept BaseException:\n    g()\n    raise"),
    (rules.nothing_is_swallowed, SERVER, "try: f()\nexcept KeyError:\n    g()"),
    (rules.nothing_is_swallowed, "broker_core/worker.py", "try: f()\nexcept BaseException:\n    g()"),
    (rules.modules_say_what_they_are, SERVER, '"""What it is."""\nimport os'),
    (rules.modules_say_what_they_are, "console/__init__.py", ""),
    (rules.modules_say_what_they_are, "console/migrations/0002_later.py", "from django.db import migrations"),
]


def _name(value: object) -> str:
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize(("rule", "path", "text"), BROKEN, ids=_name)
def test_a_rule_finds_what_breaks_it(rule: rules.Rule, path: str, text: str) -> None:
    assert list(rule(rules.Source(path, ast.parse(text))))


@pytest.mark.parametrize(("rule", "path", "text"), FINE, ids=_name)
def test_a_rule_lets_pass_what_keeps_it(rule: rules.Rule, path: str, text: str) -> None:
    assert list(rule(rules.Source(path, ast.parse(text)))) == []


def test_every_rule_is_shown_to_find_something() -> None:
    assert {rule for rule, _, _ in BROKEN} == set(rules.RULES)
