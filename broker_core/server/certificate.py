"""When a certificate ends, as its file says. Python's ssl tells that only of a peer's, and only if the connection trusts it."""

from __future__ import annotations


def ends_at(pem: str) -> float | None:
    """When the first of them ends, in seconds since the epoch: one that signed the others ends all. None: there is none, or nobody knows."""
    from cryptography import x509  # 11 MiB and a tenth of a second, for who listens with TLS only

    try:
        return min(each.not_valid_after_utc.timestamp() for each in x509.load_pem_x509_certificates(pem.encode()))
    except ValueError:
        return None
