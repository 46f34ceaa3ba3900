"""Settings: every variable is bounded, every refusal names the variable, and the reference in docs/ is what the code says."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from broker_core.config import BrokerConfig, ConfigError, reference, settings, variable_of
from broker_core.engine.settings import BOUNDS
from tests.tidy.rules import REPOSITORY

NUMBERS = [setting for setting in settings() if "low" in setting.metadata]


@pytest.mark.parametrize("setting", NUMBERS, ids=variable_of)
@pytest.mark.parametrize("beyond", ["low", "high"])
def test_a_number_out_of_bounds_is_refused_by_name(setting, beyond: str) -> None:
    value = setting.metadata[beyond] + (1 if beyond == "high" else -1)
    with pytest.raises(ConfigError, match=variable_of(setting)):
        BrokerConfig.from_env({variable_of(setting): str(value)})


@pytest.mark.parametrize("text", ["", " ", "ten", "1e3", "-1", "1.5", "1 MB", "0x10", "\u0661", "9" * 30])
def test_what_is_no_whole_number_is_refused_or_is_the_default(text: str) -> None:
    if text.strip():
        with pytest.raises(ConfigError, match="SURETY_HTTP_PORT"):
            BrokerConfig.from_env({"SURETY_HTTP_PORT": text})
    else:
        assert BrokerConfig.from_env({"SURETY_HTTP_PORT": text}).http_port == 8000


@pytest.mark.parametrize(
    ("text", "octets"), [("1048576", 1 << 20), ("1_048_576", 1 << 20), ("1MiB", 1 << 20), ("1 GiB", 1 << 30), ("64KiB", 1 << 16)]
)
def test_sizes_carry_units(text: str, octets: int) -> None:
    assert BrokerConfig.from_env({"SURETY_SEND_BUFFER_OCTETS_MAX": text}).send_buffer_octets_max == octets


@pytest.mark.parametrize("name", ["redelivery_max", "redelivery_delay_ms", "redelivery_multiplier", "redelivery_delay_max_ms"])
def test_what_destinations_may_be_set_to_the_default_of_all_may_be_set_to_and_nothing_else(name: str) -> None:
    _, low, high = BOUNDS[name]
    setting = next(setting for setting in settings() if setting.name == name)
    assert (setting.metadata["low"], setting.metadata["high"]) == (low, high)


@pytest.mark.parametrize(("text", "value"), [("true", True), ("no", False), ("0", False), ("ON", True)])
def test_a_flag_is_true_or_false(text: str, value: bool) -> None:
    assert BrokerConfig.from_env({"SURETY_AUTO_CREATE_QUEUES": text}).auto_create_queues is value


def test_a_flag_is_nothing_else() -> None:
    with pytest.raises(ConfigError, match="SURETY_AUTO_CREATE_QUEUES is 'maybe'"):
        BrokerConfig.from_env({"SURETY_AUTO_CREATE_QUEUES": "maybe"})


def test_a_certificate_needs_its_key() -> None:
    with pytest.raises(ConfigError, match="SURETY_TLS_KEY"):
        BrokerConfig.from_env({"SURETY_TLS_CERT": "/tmp/certificate.pem"})


def test_a_node_falls_silent_before_another_may_take_over() -> None:
    with pytest.raises(ConfigError, match="must grow in this order"):
        BrokerConfig.from_env({"SURETY_OUTPUTS_STOP_MS": "3000"})


def test_the_wait_before_redelivery_does_not_begin_beyond_its_end() -> None:
    with pytest.raises(ConfigError, match="SURETY_REDELIVERY_DELAY_MAX_MS"):
        BrokerConfig.from_env({"SURETY_REDELIVERY_DELAY_MS": "90000"})


def test_a_database_is_named_by_a_libpq_uri() -> None:
    with pytest.raises(ConfigError, match="DATABASE_URL"):
        BrokerConfig.from_env({"DATABASE_URL": "mysql://localhost/surety"})


def test_without_a_database_the_embedded_one_is_used() -> None:
    config = BrokerConfig.from_env({"SURETY_HOME": "/srv/surety home"})
    assert config.embedded
    assert config.database_url == "postgresql://surety@/surety?host=%2Fsrv%2Fsurety%20home%2Fpostgres%2Fsocket"


def test_with_a_database_nothing_is_embedded() -> None:
    config = BrokerConfig.from_env({"DATABASE_URL": "postgresql://surety@db.example/surety"})
    assert not config.embedded
    assert config.database_url == "postgresql://surety@db.example/surety"


def test_an_embedded_database_stays_one_when_its_socket_is_put_elsewhere(tmp_path: Path) -> None:
    config = BrokerConfig.from_env({"SURETY_HOME": str(tmp_path)})
    (tmp_path / "postgres").symlink_to(tmp_path / "elsewhere")
    assert config.embedded


def test_the_socket_is_found_where_the_supervisor_left_a_link_to(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "postgres" / "socket").symlink_to(tmp_path / "elsewhere")
    assert BrokerConfig.from_env({"SURETY_HOME": str(tmp_path)}).sockets == tmp_path / "elsewhere"


def test_the_home_does_not_depend_on_where_one_stands_later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert BrokerConfig.from_env({"SURETY_HOME": "here"}).home == tmp_path / "here"


def test_the_configuration_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        BrokerConfig().http_port = 1  # type: ignore[misc]


def test_every_setting_has_a_reason() -> None:
    assert all(f"| `{variable_of(setting)}` |" in reference() for setting in settings())


def test_the_reference_is_what_the_code_says() -> None:
    """If this fails: python -m broker_core.config > docs/configuration.md"""
    assert (REPOSITORY / "docs" / "configuration.md").read_text("utf-8") == reference()


def test_a_wrong_setting_stops_the_command_with_a_sentence() -> None:
    environment = {"SURETY_HTTP_PORT": "eight", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "manage.py", "run"], cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.strip() == "SURETY_HTTP_PORT is 'eight', but must be a whole number, with KiB, MiB or GiB if you like."
