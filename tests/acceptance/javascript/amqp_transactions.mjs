// Local transactions with rhea, which sends and settles within them but has no words for them: the coordinator's are said by hand.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

import rhea from "rhea";

import { pause, within } from "./inbox.mjs";
import { outcome_of, Rhea } from "./rhea_client.mjs";

const { types } = rhea;
const frames = createRequire(import.meta.url)("rhea/lib/frames.js");
const DECLARE = 0x31, DISCHARGE = 0x32, DECLARED = 0x33, TRANSACTIONAL = 0x34, ACCEPTED = 0x24;
const STATE = 7; // the place of this field in a transfer
const SENT_WITHIN = new Map(); // states of what is to leave in a transaction, by delivery-tag

const plain = frames.transfer;
frames.transfer = (fields) => {
  const transfer = plain(fields), state = SENT_WITHIN.get(String(fields.delivery_tag));
  if (state) transfer.value[STATE] = state;
  return transfer;
};

const transactional = (transaction, outcome) => types.wrap_described([types.wrap_binary(transaction), ...(outcome ? [types.wrap_described([], outcome)] : [])], TRANSACTIONAL);

// The value as the body of a message: rhea would forget what describes it.
function message(value) {
  const writer = new types.Writer();
  writer.write(value);
  return Buffer.concat([Buffer.from([0, 0x53, 0x77]), writer.toBuffer()]);
}

async function asked(coordinator, value) {
  const delivery = coordinator.send(message(value), undefined, 0);
  while (!delivery.remote_settled) await within(new Promise((resolve) => { coordinator.once("settled", resolve); }), "an answer");
  return delivery.remote_state;
}

async function begins(coordinator) {
  const answer = await asked(coordinator, types.wrap_described([null], DECLARE));
  assert.equal(Number(answer.descriptor.value), DECLARED);
  return answer.value[0];
}

// Whether the broker did as it was told.
async function discharges(coordinator, transaction, fail) {
  const answer = await asked(coordinator, types.wrap_described([types.wrap_binary(transaction), types.wrap_boolean(fail)], DISCHARGE));
  return answer.constructor.composite_type;
}

async function sends_within(sender, transaction, body) {
  const tag = `t${SENT_WITHIN.size}`;
  SENT_WITHIN.set(tag, transactional(transaction));
  const delivery = sender.send({ body, durable: true }, tag);
  while (!delivery.remote_settled) await within(new Promise((resolve) => { sender.once("settled", resolve); }), "an outcome");
  assert.equal(Number(delivery.remote_state.descriptor.value), TRANSACTIONAL);
}

async function takes_within(receiver, transaction) {
  const message = await receiver.inbox.next();
  message.delivery.update(true, transactional(transaction, ACCEPTED));
  await pause(1); // else rhea would write a discharge that follows before it
  return message;
}

export async function what_is_sent_in_a_transaction_is_there_when_it_is_committed(port, name) {
  const client = await Rhea.open(port);
  const coordinator = await client.coordinates();
  const sender = await client.sends_to(name), receiver = await client.receives(name);
  const first = await begins(coordinator);
  await sends_within(sender, first, "never");
  assert.equal(await discharges(coordinator, first, true), "accepted");
  const second = await begins(coordinator);
  await sends_within(sender, second, "a");
  await sends_within(sender, second, "b");
  await receiver.inbox.none();
  assert.equal(await discharges(coordinator, second, false), "accepted");
  for (const body of ["a", "b"]) {
    const message = await receiver.inbox.next();
    assert.equal(message.body, body);
    message.delivery.accept();
  }
  await client.close();
}

export async function what_was_taken_in_a_transaction_that_is_rolled_back_comes_again(port, name) {
  const client = await Rhea.open(port);
  const coordinator = await client.coordinates();
  await outcome_of(await client.sends_to(name), { body: "a", durable: true });
  const receiver = await client.receives(name);
  const first = await begins(coordinator);
  assert.equal((await takes_within(receiver, first)).delivery_count ?? 0, 0);
  assert.equal(await discharges(coordinator, first, true), "accepted");
  const second = await begins(coordinator);
  assert.equal((await takes_within(receiver, second)).delivery_count, 1);
  assert.equal(await discharges(coordinator, second, false), "accepted");
  await receiver.inbox.none();
  await client.close();
}

export async function a_commit_that_cannot_be_done_is_rejected(port, name) {
  const client = await Rhea.open(port);
  const coordinator = await client.coordinates();
  const sender = await client.sends_to("mq.sys.dmq");
  const transaction = await begins(coordinator);
  await sends_within(sender, transaction, name).catch(() => undefined); // its outcome is rejected: nobody sends to the dead
  const answer = await asked(coordinator, types.wrap_described([types.wrap_binary(transaction), types.wrap_boolean(false)], DISCHARGE));
  assert.equal(answer.constructor.composite_type, "rejected");
  assert.equal(answer.error.condition, "amqp:transaction:rollback");
  await client.close();
}

// Played alone: says when it is in the middle of a transaction, and goes on when it reads a line; rhea connects again by itself meanwhile.
export async function is_killed_in_a_transaction(port, name) {
  const client = await Rhea.open(port, { reconnect: true, initial_reconnect_delay: 200 });
  const from = `${name}.from`, to = `${name}.to`;
  await outcome_of(await client.sends_to(from), { body: "a", durable: true });
  const coordinator = await client.coordinates();
  const receiver = await client.receives(from, { credit: 1 });
  const sender = await client.sends_to(to);
  const lost = await begins(coordinator);
  await takes_within(receiver, lost);
  await sends_within(sender, lost, "never");
  const back = client.comes_back();
  console.log("in the middle");
  await new Promise((resolve) => { createInterface({ input: process.stdin }).once("line", resolve); });
  await back;
  await client.close();
  const again = await Rhea.open(port);
  const renewed = await again.coordinates();
  const transaction = await begins(renewed);
  const message = await takes_within(await again.receives(from), transaction);
  assert.equal(message.body, "a");
  assert.ok(message.delivery_count >= 1);
  await sends_within(await again.sends_to(to), transaction, "a!");
  assert.equal(await discharges(renewed, transaction, false), "accepted");
  const results = await again.receives(to);
  const result = await results.inbox.next();
  assert.equal(result.body, "a!");
  result.delivery.accept();
  await results.inbox.none();
  await (await again.receives(from, { name: "looks" })).inbox.none();
  await again.close();
  console.log("well");
}
