// What the broker refuses, as the application hears it. Not with stompit: it may notice the end of the connection before it has read the ERROR
// in front of it, and says only that the connection ended.
import assert from "node:assert/strict";

const DURABLE = "durable-subscription-name";

export async function a_wrong_password_is_refused(open) {
  await assert.rejects(open({ passcode: "wrong" }), /refused|password|account/);
}

export async function a_client_identifier_in_use_is_refused(open, name) {
  const clientId = `${name} of its own`;
  const holder = await open({ clientId });
  await assert.rejects(open({ clientId }), /in use by another connection/);
  await holder.send(`/queue/${name}`, "undisturbed");
  await holder.close();
  await (await open({ clientId })).close();
}

export async function a_durable_subscription_needs_a_client_identifier(open, name) {
  const client = await open();
  client.subscribeOnly(`/topic/${name}`, { [DURABLE]: "d" });
  assert.equal(await client.refusal(), "client-id required");
}

export async function a_transaction_that_has_not_begun_is_refused(open) {
  const client = await open();
  client.commitOnly("t");
  assert.equal(await client.refusal(), "no such transaction");
}
