// What an application does with rhea: each scenario gets the port and the name of a queue or topic of its own.
import assert from "node:assert/strict";

import rhea from "rhea";

import { pause } from "./inbox.mjs";
import { goes, outcome_of, Rhea } from "./rhea_client.mjs";

const take = async (receiver) => {
  const message = await receiver.inbox.next();
  message.delivery.accept();
  return message.body;
};

// -- queues ----------------------------------------------------------------------------------------------------------------------------
export async function messages_come_back_as_sent(port, name) {
  const client = await Rhea.open(port);
  const sender = await client.sends_to(name);
  const sent = { message_id: "one", subject: "kind", body: { a: [1, "x", true] }, application_properties: { n: 5 }, durable: true, priority: 7 };
  assert.equal(await outcome_of(sender, sent), "accepted");
  const message = await (await client.receives(name)).inbox.next();
  for (const [field, value] of Object.entries(sent)) assert.deepEqual(message[field], value, field);
  assert.equal(message.delivery_count ?? 0, 0);
  message.delivery.accept();
  await client.close();
}

export async function a_message_says_where_it_goes(port, name) {
  const client = await Rhea.open(port);
  const relay = await client.sends_to({});
  assert.equal(await outcome_of(relay, { to: `queue://${name}`, body: "there" }), "accepted");
  assert.equal(await outcome_of(relay, { body: "nowhere" }), "rejected");
  assert.equal(await take(await client.receives(name)), "there");
  await client.close();
}

export async function outcomes_are_what_they_mean(port, name) {
  const client = await Rhea.open(port);
  const sender = await client.sends_to(name);
  await outcome_of(sender, { body: "a", durable: true });
  const receiver = await client.receives(name);
  let message = await receiver.inbox.next();
  message.delivery.release();
  message = await receiver.inbox.next();
  assert.equal(message.delivery_count ?? 0, 0);
  message.delivery.modified({ delivery_failed: true });
  message = await receiver.inbox.next();
  assert.equal(message.delivery_count, 1);
  message.delivery.reject({ condition: "application:no", description: "not that" });
  const filter = rhea.filter.selector(`original_destination = 'queue/${name}'`);
  assert.equal(await take(await client.receives({ address: "mq.sys.dmq", filter })), "a");
  await client.close();
}

export async function settled_messages_need_no_outcome(port, name) {
  const client = await Rhea.open(port);
  const sender = await client.sends_to(name, { snd_settle_mode: 1 });
  for (let number = 0; number < 10; number += 1) sender.send({ body: number });
  const receiver = await client.receives(name, { snd_settle_mode: 1 });
  for (let number = 0; number < 10; number += 1) assert.equal((await receiver.inbox.next()).body, number);
  await client.close();
}

export async function a_drain_is_answered(port, name) {
  const client = await Rhea.open(port);
  await outcome_of(await client.sends_to(name), { body: "only" });
  const receiver = await client.receives(name, { credit: 0 });
  receiver.add_credit(5);
  await goes(receiver, () => { receiver.drain = true; receiver.drain_credit(); }, "receiver_drained");
  assert.equal(await take(receiver), "only");
  await client.close();
}

export async function a_browser_takes_nothing(port, name) {
  const client = await Rhea.open(port);
  const sender = await client.sends_to(name);
  for (const body of ["a", "b"]) await outcome_of(sender, { body });
  const browser = await client.receives({ address: name, distribution_mode: "copy" });
  for (const body of ["a", "b"]) assert.equal((await browser.inbox.next()).body, body);
  const receiver = await client.receives(name, { name: "consumer" });
  for (const body of ["a", "b"]) assert.equal(await take(receiver), body);
  await client.close();
}

export async function a_large_message_comes_octet_by_octet(port, name) {
  const client = await Rhea.open(port);
  const octets = Buffer.alloc(3_000_000, Buffer.from(Array.from({ length: 251 }, (_, octet) => octet)));
  assert.equal(await outcome_of(await client.sends_to(name), { body: rhea.message.data_section(octets), durable: true }), "accepted");
  const message = await (await client.receives(name)).inbox.next();
  assert.ok(octets.equals(message.body.content));
  message.delivery.accept();
  await client.close();
}

export async function the_highest_priority_comes_first(port, name) {
  const client = await Rhea.open(port);
  const sender = await client.sends_to(name);
  for (let priority = 0; priority < 10; priority += 1) await outcome_of(sender, { body: priority, priority });
  const receiver = await client.receives(name);
  for (let priority = 9; priority >= 0; priority -= 1) assert.equal(await take(receiver), priority);
  await client.close();
}

export async function what_has_expired_is_among_the_dead(port, name) {
  const client = await Rhea.open(port);
  await outcome_of(await client.sends_to(name), { body: "late", ttl: 100, durable: true });
  await pause(300);
  await (await client.receives(name)).inbox.none();
  const filter = rhea.filter.selector(`JMS_SUN_DMQ_UNDELIVERED_REASON = 'EXPIRED' AND original_destination = 'queue/${name}'`);
  assert.equal(await take(await client.receives({ address: "mq.sys.dmq", filter })), "late");
  await client.close();
}

export async function what_is_delayed_comes_later(port, name) {
  const client = await Rhea.open(port);
  const receiver = await client.receives(name);
  const began = Date.now();
  await outcome_of(await client.sends_to(name), { body: "later", message_annotations: { "x-opt-delivery-delay": 700 } });
  assert.equal(await take(receiver), "later");
  assert.ok(Date.now() - began >= 690, `it came after ${Date.now() - began} ms`);
  await client.close();
}

// -- topics ----------------------------------------------------------------------------------------------------------------------------
export async function a_topic_is_for_all_and_a_selector_chooses(port, name) {
  const client = await Rhea.open(port);
  const all = await client.receives(`topic://${name}`, { name: "all" });
  const some = await client.receives({ address: `topic://${name}`, filter: rhea.filter.selector("colour = 'green'") }, { name: "some" });
  const sender = await client.sends_to(`topic://${name}`);
  for (const colour of ["red", "green"]) await outcome_of(sender, { body: colour, application_properties: { colour } });
  assert.equal(await take(all), "red");
  assert.equal(await take(all), "green");
  assert.equal(await take(some), "green");
  await some.inbox.none();
  await assert.rejects(client.receives({ address: name, filter: rhea.filter.selector("= 3") }, { name: "wrong" }), /selector/);
  await client.close();
}

export async function a_durable_subscription_is_kept(port, name) {
  const durable = { address: `topic://${name}`, durable: 2, expiry_policy: "never" };
  let client = await Rhea.open(port, { container: name });
  let receiver = await client.receives(durable, { name: "sub" });
  await goes(receiver, () => receiver.detach(), "receiver_close");
  const sender = await client.sends_to(`topic://${name}`);
  await outcome_of(sender, { body: "kept", durable: true });
  await client.close();
  client = await Rhea.open(port, { container: name });
  receiver = await client.receives(durable, { name: "sub" });
  assert.equal(await take(receiver), "kept");
  await goes(receiver, () => receiver.close(), "receiver_close");
  await outcome_of(await client.sends_to(`topic://${name}`), { body: "lost", durable: true });
  await (await client.receives(durable, { name: "sub" })).inbox.none();
  await client.close();
}

export async function workers_share_a_subscription(port, name) {
  const client = await Rhea.open(port);
  const source = { address: `topic://${name}`, capabilities: ["shared", "global"] };
  const one = await client.receives(source, { name: `${name}|global-volatile1`, credit: 1 });
  const two = await client.receives(source, { name: `${name}|global-volatile2`, credit: 1 });
  const sender = await client.sends_to(`topic://${name}`);
  for (const body of ["a", "b"]) await outcome_of(sender, { body });
  assert.deepEqual([await take(one), await take(two)].sort(), ["a", "b"]);
  await client.close();
}

export async function workers_share_a_durable_subscription(port, name) {
  const source = { address: `topic://${name}`, durable: 2, expiry_policy: "never", capabilities: ["shared"] };
  let client = await Rhea.open(port, { container: name });
  const one = await client.receives(source, { name: "sub", credit: 1 });
  const two = await client.receives(source, { name: "sub|2", credit: 1 });
  const sender = await client.sends_to(`topic://${name}`);
  for (const body of ["a", "b"]) await outcome_of(sender, { body, durable: true });
  assert.deepEqual([await take(one), await take(two)].sort(), ["a", "b"]);
  for (const receiver of [one, two]) await goes(receiver, () => receiver.detach(), "receiver_close");
  await outcome_of(sender, { body: "kept", durable: true });
  await client.close();
  client = await Rhea.open(port, { container: name });
  const last = await client.receives(source, { name: "sub|3" });
  assert.equal(await take(last), "kept");
  await goes(last, () => last.close(), "receiver_close");
  await client.close();
}

export async function a_durable_subscription_that_containers_share_is_ended_by_its_name(port, name) {
  const source = { address: `topic://${name}`, durable: 2, expiry_policy: "never", capabilities: ["shared", "global"] };
  const clients = [await Rhea.open(port), await Rhea.open(port)];
  const receivers = [await clients[0].receives(source, { name: `${name}|global` }), await clients[1].receives(source, { name: `${name}|global2` })];
  await outcome_of(await clients[0].sends_to(`topic://${name}`), { body: "once", durable: true });
  assert.equal(await Promise.race(receivers.map(take)), "once");
  for (const receiver of receivers) await goes(receiver, () => receiver.detach(), "receiver_close");
  const found = await clients[0].finds(`${name}|global`, ["shared", "global"]);
  assert.equal(found.source.address, `topic://${name}`);
  await goes(found, () => found.close(), "receiver_close");
  await assert.rejects(clients[0].finds(`${name}|global`, ["shared", "global"]), /subscription/);
  for (const client of clients) await client.close();
}

// -- temporary destinations --------------------------------------------------------------------------------------------------------------
export async function a_request_is_answered(port, name) {
  const asking = await Rhea.open(port);
  const answering = await Rhea.open(port);
  const requests = await answering.receives(name);
  const replies = await asking.receives({ dynamic: true });
  await outcome_of(await asking.sends_to(name), { body: "ask", reply_to: replies.source.address });
  const request = await requests.inbox.next();
  request.delivery.accept();
  const relay = await answering.sends_to({});
  assert.equal(await outcome_of(relay, { to: request.reply_to, body: "answer" }), "accepted");
  assert.equal(await take(replies), "answer");
  await assert.rejects(answering.receives(request.reply_to), /temporary/);
  await asking.close();
  assert.equal(await outcome_of(relay, { to: request.reply_to, body: "too late" }), "rejected");
  await answering.close();
}

// -- connections -------------------------------------------------------------------------------------------------------------------------
export async function wrong_credentials_are_refused(port) {
  await assert.rejects(Rhea.open(port, { password: "wrong" }));
}

export async function a_container_that_is_connected_is_refused(port, name) {
  const sole = { container: name, desired_capabilities: ["sole-connection-for-container"] };
  const client = await Rhea.open(port, sole);
  await assert.rejects(Rhea.open(port, sole), /in use/);
  await client.close();
  await (await Rhea.open(port, sole)).close();
}
