"""One supervisor for each home, ports that are free, and sentences that say what is wrong."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.config import BrokerConfig
from console.launch import home as launch_home
from console.launch.home import check_ports, take_home, wait_for_leftovers
from console.launch.refusal import CannotStart


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another program holds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_a_home_has_one_supervisor(tmp_path: Path) -> None:
    refused = pytest.raises(CannotStart, match=rf"already runs on {tmp_path}/var \(process {os.getpid()}\)\.$")
    with take_home(tmp_path / "var"), refused:
        take_home(tmp_path / "var")


def test_a_home_is_free_again_when_its_supervisor_is_gone(tmp_path: Path) -> None:
    take_home(tmp_path).close()
    take_home(tmp_path).close()


def test_logs_and_pid_files_are_for_the_owner_only(tmp_path: Path) -> None:
    with take_home(tmp_path / "var"):
        assert [(tmp_path / "var" / folder).stat().st_mode & 0o777 for folder in ("run", "log")] == [0o700, 0o700]


def test_a_home_that_cannot_be_made_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotStart, match="cannot be used as SURETY_HOME: Not a directory"):
        take_home(tmp_path / "file" / "var")


def test_a_busy_port_is_named_with_the_setting_that_moves_it(taken: int) -> None:
    with pytest.raises(CannotStart, match=f"Port {taken} on 127.0.0.1 is in use by another program; free it or set SURETY_STOMP_PORT"):
        check_ports(BrokerConfig(http_port=free_port(), stomp_port=taken, amqp_port=free_port()))


def test_the_port_of_tls_counts_only_with_a_certificate(taken: int) -> None:
    ports = {"http_port": free_port(), "stomp_port": free_port(), "stomp_tls_port": taken, "amqp_port": free_port()}
    check_ports(BrokerConfig(**ports))
    with pytest.raises(CannotStart, match="SURETY_STOMP_TLS_PORT"):
        check_ports(BrokerConfig(**ports, tls_cert="certificate.pem", tls_key="key.pem"))


def test_two_listeners_cannot_share_a_port() -> None:
    port = free_port()
    with pytest.raises(CannotStart, match=f"are both {port}"):
        check_ports(BrokerConfig(http_port=port, stomp_port=port, amqp_port=free_port()))


def test_an_address_that_is_not_ours_is_refused_in_a_sentence() -> None:
    with pytest.raises(CannotStart, match=r"on 192\.0\.2\.1 cannot be opened"):
        check_ports(BrokerConfig(bind="192.0.2.1", http_port=free_port(), stomp_port=free_port(), amqp_port=free_port()))


def test_what_a_killed_supervisor_left_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    pid_file = tmp_path / "run" / "node.pid"
    command = [sys.executable, "-c", "import sys; print('runs', flush=True); sys.stdin.read(1)", "broker_core"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as leftover:
        assert leftover.stdout is not None and leftover.stdout.readline() == b"runs\n"
        pid_file.write_text(f"{leftover.pid}\n")
        assert launch_home._is_ours(pid_file)
        leftover.kill()
        leftover.wait()
        wait_for_leftovers(tmp_path)
    assert not pid_file.exists()


@pytest.mark.parametrize("content", ["", "no number", "999999999", "-1", str(os.getppid())])
def test_a_pid_file_that_means_nobody_of_ours_holds_nothing_up(tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_home, "LEFTOVER_SECONDS_MAX", 0)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "node.pid").write_text(content)
    wait_for_leftovers(tmp_path)
    assert not (tmp_path / "run" / "node.pid").exists()
