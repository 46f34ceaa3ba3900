"""An OpenID provider for tests, over a real socket: discovery, keys, authorization codes with PKCE, signed ID tokens. It can be told to misbehave."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID, CLIENT_SECRET = "surety", "the client's secret"


class Provider:
    def __init__(self) -> None:
        self.key, self.other_key = (RSAKey.generate_key(2048, {"kid": "1"}) for _ in range(2))
        self.claims: dict[str, Any] = {"sub": "u1", "preferred_username": "erna", "groups": ["staff"]}
        """Of whoever logs in."""
        self.wrong: dict[str, Any] = {}
        """Claims of the ID token that are to be otherwise; None: missing."""
        self.sign_with_other_key = False
        self.unsigned = False
        self.without_id_token = False
        self.metadata: dict[str, Any] = {}
        self.exchanged: list[dict[str, str]] = []
        self._asked: dict[str, dict[str, str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.issuer = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def described(self) -> dict[str, Any]:
        places = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        told = {name: f"{self.issuer}/{place}" for name, place in places.items()}
        return {"issuer": self.issuer, **told, "id_token_signing_alg_values_supported": ["RS256"], **self.metadata}

    def authorize(self, url: str) -> str:
        """What a browser does at the provider: where it is sent back to."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert (asked["client_id"], asked["response_type"], asked["code_challenge_method"]) == (CLIENT_ID, "code", "S256")
        code = f"code-{len(self._asked)}"
        self._asked[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def exchange(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        self.exchanged.append(form)
        asked = self._asked.pop(form.get("code", ""), None)
        scheme, _, credentials = authorization.partition(" ")
        if scheme != "Basic" or base64.b64decode(credentials).decode() != f"{CLIENT_ID}:{CLIENT_SECRET}":
            return 401, {"error": "invalid_client"}
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=").decode()
        if asked is None or asked["code_challenge"] != challenge or asked["redirect_uri"] != form.get("redirect_uri"):
            return 400, {"error": "invalid_grant"}
        answer = {"access_token": "opaque", "token_type": "Bearer", "expires_in": 60}
        return 200, answer if self.without_id_token else {**answer, "id_token": self._id_token(asked["nonce"])}

    def _id_token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 60, "nonce": nonce, **self.claims, **self.wrong}
        claims = {name: value for name, value in claims.items() if value is not None}
        if self.unsigned:
            parts = [base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in ({"alg": "none"}, claims)]
            return f"{parts[0]}.{parts[1]}."
        return jwt.encode({"alg": "RS256", "kid": "1"}, claims, self.other_key if self.sign_with_other_key else self.key)


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the library's name
            found = {"/.well-known/openid-configuration": provider.described, "/keys": lambda: {"keys": [provider.key.as_dict(private=False)]}}
            self._answer(200, found[self.path]())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            self._answer(*provider.exchange(form, self.headers.get("Authorization", "")))

        def _answer(self, status: int, document: dict[str, Any]) -> None:
            octets = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(octets)))
            self.end_headers()
            self.wfile.write(octets)

        def log_message(self, *_arguments: Any) -> None:
            """Says nothing."""

    return Handler
