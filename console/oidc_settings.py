"""How single sign-on is set up."""

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(slots=True, frozen=True)
class Settings:
    """From SURETY_OIDC_*; docs/console.md says what each is."""

    issuer: str
    client_id: str
    client_secret: str
    name_claim: str
    groups_claim: str
    roles: tuple[tuple[str, frozenset[str]], ...]
    """Each with the groups whose members have it; the first that fits counts."""

    @property
    def title(self) -> str:
        """Of the button."""
        return urlsplit(self.issuer).hostname or self.issuer
