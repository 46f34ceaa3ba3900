"""The pictures of docs/pipeline.md: a shop's queue on a really running broker has two bad minutes, its ledger goes into a lake, and the statements that
stand in the document are asked of it.

    python -m tests.pipeline.questions        # writes docs/pictures/lake-*.svg
"""

from __future__ import annotations

import re
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from pyspark.sql import SparkSession

from broker_core.client import AcknowledgeMode, ConnectionFactory, Queue
from broker_core.pipeline.jobs import Place, run
from broker_core.pipeline.lake import Lake
from broker_core.pipeline.session import SparkSettings, session
from tests.acceptance.operators import ask
from tests.support.service import Service

DOCUMENT = Path(__file__).parents[2] / "docs" / "pipeline.md"
QUESTION = re.compile(r"<!-- question (?P<name>\w+) -->\n+```sql\n(?P<statement>.*?)```", re.DOTALL)
QUEUE = Queue("shop.orders")
SECONDS, RATE = 120, 100
AWAY = 30, 60
"""Two of three consumers are gone from then to then."""
WIDTH, HEIGHT = 860, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 170, 18, 40
COLOURS = ("#1f77b4", "#d95f02", "#2a9d5c", "#7b4fb5", "#b8860b", "#666666")

Lines = Mapping[str, Sequence[tuple[float, float]]]


def questions() -> dict[str, str]:
    """The document's statements, by name."""
    return {found["name"]: found["statement"] for found in QUESTION.finditer(DOCUMENT.read_text("utf-8"))}


def views(lake: Lake) -> None:
    """What the statements read."""
    for table in ("events", "commits", "destinations", "subscriptions"):
        lake.frame(table).createOrReplaceTempView(table)


def answer(spark: SparkSession, statement: str) -> Lines:
    """Of rows (second, what, value) a line for each `what`, from the first second on."""
    rows = spark.sql(statement).collect()
    begin = min((row[0] for row in rows), default=0)
    lines: dict[str, list[tuple[float, float]]] = {}
    for second, what, value in sorted(rows):
        lines.setdefault(str(what), []).append((float(second - begin), float(value)))
    return lines


# -- a picture --------------------------------------------------------------------------------------------------------------------------
def picture(lines: Lines, title: str) -> str:
    """An SVG with axes that begin at nothing."""
    across = max((x for line in lines.values() for x, _ in line), default=1.0) or 1.0
    high = _round(max((y for line in lines.values() for _, y in line), default=1.0))
    wide, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(x: float, y: float) -> str:
        return f"{LEFT + x / across * wide:.1f},{TOP + tall - y / high * tall:.1f}"

    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for part in range(5):
        y = TOP + tall - part / 4 * tall
        drawn.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + wide}" y2="{y:.1f}" stroke="#ddd"/>')
        drawn.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#333">{high * part / 4:g}</text>')
    for part in range(5):
        x = LEFT + part / 4 * wide
        drawn.append(f'<text x="{x:.1f}" y="{TOP + tall + 18}" text-anchor="middle" fill="#333">{across * part / 4:.0f} s</text>')
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        drawn.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(at(x, y) for x, y in line)}"/>')
        y = TOP + 14 + number * 20
        drawn.append(f'<line x1="{LEFT + wide + 14}" y1="{y - 4}" x2="{LEFT + wide + 34}" y2="{y - 4}" stroke="{colour}" stroke-width="3"/>')
        drawn.append(f'<text x="{LEFT + wide + 40}" y="{y}" fill="#222">{escape(name)}</text>')
    return "\n".join([*drawn, "</svg>", ""])


def _round(value: float) -> float:
    """The next number that four parts make round ones."""
    step = 1.0
    while True:
        for factor in (1, 2, 4, 8):
            if step * factor >= value:
                return step * factor
        step *= 10


# -- two bad minutes --------------------------------------------------------------------------------------------------------------------
def trouble(service: Service) -> None:
    """Orders come evenly. Two of three consumers go away for half a minute; some orders are only good for five seconds, some fail with everybody."""
    ask(service, "create", "queue/shop.orders", redelivery_max=2, redelivery_delay_ms=500)
    factory = ConnectionFactory(address_list=f"stomp://127.0.0.1:{service.stomp_port}", consumer_flow_limit=20)
    began, over = time.monotonic(), threading.Event()
    pauses = ((0.015, False), (0.01, True), (0.01, True))
    everybody = [threading.Thread(target=_consume, args=(factory, began, over, pause, leaves)) for pause, leaves in pauses]
    for one in everybody:
        one.start()
    with factory.create_connection() as connection, connection.create_session() as opened:
        producer = opened.create_producer(QUEUE)
        count = 0
        while (now := time.monotonic() - began) < SECONDS:
            while count < now * RATE:
                message = opened.create_text_message(f"order {count}")
                message.properties["fails"] = count % 97 == 0
                producer.send(message, time_to_live=5 if count % 5 == 0 else 0)
                count += 1
            time.sleep(0.02)
    time.sleep(3)
    over.set()
    for one in everybody:
        one.join()


def _consume(factory: ConnectionFactory, began: float, over: threading.Event, pause: float, leaves: bool) -> None:
    def is_away() -> bool:
        return leaves and AWAY[0] <= time.monotonic() - began < AWAY[1]

    while not over.is_set():
        if is_away():
            time.sleep(0.1)
            continue
        with factory.create_connection() as connection, connection.create_session(AcknowledgeMode.INDIVIDUAL) as opened:
            connection.start()
            consumer = opened.create_consumer(QUEUE)
            while not over.is_set() and not is_away():
                message = consumer.receive(0.2)
                if message is None:
                    continue
                time.sleep(pause)
                if message.properties.get("fails") in (True, "true"):
                    opened.recover()
                else:
                    opened.acknowledge_this_message(message)


def main() -> None:
    asked = questions()
    with tempfile.TemporaryDirectory() as folder, Service() as service:
        trouble(service)
        settings = SparkSettings(Path(folder) / "spark", "local[2]", shuffle_partitions=4)
        run(Place(service.dsn(), f"{folder}/lake", settings), tell=print)
        spark = session(settings)
        views(Lake(spark, f"{folder}/lake"))
        for name, statement in asked.items():
            lines = answer(spark, statement)
            (DOCUMENT.parent / "pictures" / f"lake-{name}.svg").write_text(picture(lines, name), "utf-8")
            print(name, {what: len(line) for what, line in lines.items()})
        spark.stop()


if __name__ == "__main__":
    main()
