// `node play_tls.mjs PORT NAME AUTHORITY CERTIFICATE KEY`: over TLS, as whom the certificate names. Exits with 0 if all went well.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { outcome_of, Rhea } from "./rhea_client.mjs";

const [port, name, ...files] = process.argv.slice(2);
const [ca, cert, key] = files.map((file) => readFileSync(file));

const client = await Rhea.open(Number(port), { transport: "tls", ca, cert, key, username: undefined, password: undefined, enable_sasl_external: true });
assert.equal(await outcome_of(await client.sends_to(name), { body: "a" }), "accepted");
const message = await (await client.receives(name)).inbox.next();
assert.equal(message.body, "a");
message.delivery.accept();
await client.close();
process.exit(0);
