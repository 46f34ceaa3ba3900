"""CONNECT: which version, which heart-beats, and who (STOMP 1.2, "Connecting" and "Protocol Negotiation")."""

from __future__ import annotations

from dataclasses import dataclass

from broker_core.engine.levels import UNMAPPED, LevelMapping

from .escaping import VERSIONS
from .heartbeat import negotiate
from .levels import read_mapping
from .limits import Limits
from .mapping import flag
from .sections import Malformed


class NoCommonVersion(Malformed):
    """The client accepts none of our versions; the ERROR lists them in a header as well."""


@dataclass(slots=True)
class Login:
    """Who wants in. Answer with accept or reject. The passcode is not shown by repr."""

    login: str
    passcode: str
    host: str
    client_id: str
    mapping: LevelMapping = UNMAPPED
    """What its connection factory has delivery modes stand for."""

    shares_client_id: bool = False
    """Other connections of the account may have the identifier as well."""

    lookup: str = ""
    """The administered object that is asked for; empty: none."""

    def __repr__(self) -> str:
        return f"Login(login={self.login!r}, host={self.host!r}, client_id={self.client_id!r})"


def read_connect(headers: dict[str, str], limits: Limits) -> tuple[str, tuple[int, int], Login]:
    """The version to speak, the heart-beat intervals (ours, the peer's) and the login. Raises Malformed.

    `host` is required from 1.1 on, but there is one virtual host only and no client was ever helped by a refusal: it may be absent.
    """
    wanted = headers.get("accept-version")
    if wanted is None:
        version = "1.0"
        headers = {name: value.strip() for name, value in headers.items()}  # 1.0 pads
    else:
        accepted = {text.strip() for text in wanted.split(",")}
        common = [version for version in VERSIONS if version in accepted]
        if not common:
            raise NoCommonVersion(f"Supported protocol versions are {' '.join(VERSIONS)}")
        version = common[-1]
    if len(headers.get("client-id", "")) > limits.client_id_max:
        raise Malformed(f"header client-id must have at most {limits.client_id_max} characters")
    if len(headers.get("lookup", "")) > limits.client_id_max:
        raise Malformed(f"header lookup must have at most {limits.client_id_max} characters")
    beats = negotiate(headers.get("heart-beat"), limits.heart_beat_ms_min)
    login = Login(headers.get("login", ""), headers.get("passcode", ""), headers.get("host", ""), headers.get("client-id", ""))
    login.mapping, login.lookup = read_mapping(headers), headers.get("lookup", "")
    login.shares_client_id = flag(headers, "client-id-shared")
    return version, beats, login
