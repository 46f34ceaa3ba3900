"""A program that has a queue as a stream of Spark's, and writes what comes to files; tests kill it, and begin it again in the same folder.

    python -m tests.acceptance.streaming_program stomp://HOST:PORT queue/NAME FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from broker_core.pipeline.session import SparkSettings, session

ROWS = 10
"""Of one batch."""


def main(broker: str, queue: str, folder: Path) -> None:
    spark = session(SparkSettings(folder / "spark", "local[1]", memory_mib=1024, niceness=0, shuffle_partitions=1))
    stream = spark.readStream.format("surety").options(broker=broker, stream=queue, rows=ROWS).load()
    written = stream.select("text").writeStream.format("json").options(path=folder / "out", checkpointLocation=folder / "checkpoint")
    written.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
