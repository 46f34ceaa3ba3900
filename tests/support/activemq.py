"""ActiveMQ Classic as somebody else's broker: fetched once from Maven Central, checked, run in a temporary folder on loopback, ended by pid. Needs Java."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

from tests.support import maven
from tests.support.service import free_ports

VERSION = "5.18.3"
COORDINATES = f"org.apache.activemq:apache-activemq:{VERSION}:tar.gz:bin"
SHA256 = "943381aa6d340707de6c42eadbf7b41b7fdf93df604156d972d50c4da783544f"
JAVA = "java"
NOT_INSTALLED = "Java or Maven is not installed, so ActiveMQ cannot run: apt-get install openjdk-17-jre-headless maven."
START_SECONDS_MAX = 90
STOP_SECONDS_MAX = 30
OPENED = ("java.base/java.util", "java.base/java.util.concurrent", "java.base/java.lang", "java.base/java.net", "java.base/sun.net.www.protocol.http")
"""What it looks into by reflection, which Java 17 forbids otherwise."""
CONFIGURATION = """\
<beans xmlns="http://www.springframework.org/schema/beans" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="
  http://www.springframework.org/schema/beans http://www.springframework.org/schema/beans/spring-beans.xsd
  http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="elsewhere" dataDirectory="{data}" useJmx="false" advisorySupport="false">
    <persistenceAdapter><kahaDB directory="{data}/kahadb"/></persistenceAdapter>
    <systemUsage><systemUsage>
      <memoryUsage><memoryUsage limit="64 mb"/></memoryUsage>
      <storeUsage><storeUsage limit="1 gb"/></storeUsage>
      <tempUsage><tempUsage limit="256 mb"/></tempUsage>
    </systemUsage></systemUsage>
    <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:{port}"/></transportConnectors>
  </broker>
</beans>
"""


def is_installed() -> bool:
    return shutil.which(JAVA) is not None and maven.is_installed()


def archive() -> Path:
    """Where it is kept for the next time; fetched if it is not there. Raises RuntimeError if it is another one than it was."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "surety-tests"
    return maven.fetch({COORDINATES: SHA256}, folder)[0]


class ActiveMQ:
    """A context manager: entered, it speaks STOMP on `stomp_port`. Any password will do."""

    name, kind = "ActiveMQ", "activemq"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="surety-activemq-"))
        (self.stomp_port,) = free_ports(1)
        self._home = self.folder / f"apache-activemq-{VERSION}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            subprocess.run(["tar", "xzf", str(archive()), "-C", str(self.folder)], check=True)
            (self.folder / "activemq.xml").write_text(CONFIGURATION.format(data=self.folder / "data", port=self.stomp_port))
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def restart(self) -> None:
        """As planned: what is persistent it keeps."""
        self._stop()
        self._start()

    def _start(self) -> None:
        home, folder = self._home, self.folder
        opened = [argument for each in OPENED for argument in ("--add-opens", f"{each}=ALL-UNNAMED")]
        places = [f"-Dactivemq.{name}={place}" for name, place in (("home", home), ("base", folder), ("conf", home / "conf"), ("data", folder / "data"))]
        with (folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [JAVA, "-Xmx256m", *opened, *places, "-jar", str(home / "bin" / "activemq.jar"), "start", f"xbean:file:{folder / 'activemq.xml'}"],
                cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.stomp_port), 1):
                return
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"ActiveMQ did not start: {(folder / 'output').read_text()[-3000:]}")
            time.sleep(0.2)

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
