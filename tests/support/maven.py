"""Artifacts of Maven Central, by Maven: those that are named and nothing that they need, each what its checksum says."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

MAVEN = "mvn"
NOT_INSTALLED = "Maven is not installed, so nothing of Maven Central is tried: apt-get install maven."
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
FETCH_SECONDS_MAX = 300
PROJECT = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>surety</groupId><artifactId>fetched</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""


def is_installed() -> bool:
    return shutil.which(MAVEN) is not None


def file_name(coordinates: str) -> str:
    """Of group:artifact:version, or group:artifact:version:type:classifier."""
    _, artifact, version, *kind = coordinates.split(":")
    return f"{artifact}-{version}-{kind[1]}.{kind[0]}" if kind else f"{artifact}-{version}.jar"


def fetch(checksums: Mapping[str, str], folder: Path) -> list[Path]:
    """The artifacts' files in `folder`, fetched unless all are there. Checksums are SHA-256. Raises RuntimeError if one is not what it should be."""
    files = {folder / file_name(coordinates): checksum for coordinates, checksum in checksums.items()}
    if not all(file.exists() for file in files):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="surety-maven-") as project:
            pom = Path(project) / "pom.xml"
            pom.write_text(PROJECT.format(dependencies="".join(map(_dependency, checksums))))
            command = [MAVEN, "--batch-mode", "--quiet", f"--file={pom}", COPY, f"-DoutputDirectory={folder.resolve()}", "-DexcludeTransitive=true"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS_MAX)
        if done.returncode:
            raise RuntimeError(f"Maven could not fetch {', '.join(checksums)}:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    for file, checksum in files.items():
        found = hashlib.sha256(file.read_bytes()).hexdigest()
        if found != checksum:
            raise RuntimeError(f"{file} is not what it should be: its SHA-256 is {found}; remove it to have it fetched again")
    return list(files)


def _dependency(coordinates: str) -> str:
    group, artifact, version, *kind = coordinates.split(":")
    more = f"<type>{kind[0]}</type><classifier>{kind[1]}</classifier>" if kind else ""
    return f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>{more}</dependency>"
